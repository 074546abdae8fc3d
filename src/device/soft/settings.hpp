// The soft device as users set it: environment before file before default.
//
//   VERBATIM_SOFT_CONFIG   a TOML file; its table [soft] is read (conf/soft.toml shows all of it)
//   VERBATIM_SOFT_<KNOB>   one knob: VERBATIM_SOFT_MAX_QP=8, VERBATIM_SOFT_RING_BYTES=64KiB
//   VERBATIM_SOFT_GIDS     of the first port: "10.0.0.1, fe80::1 RoCE v1"
//   VERBATIM_SOFT_PKEYS    of the first port: "0xffff, 0x8001"
//   VERBATIM_SOFT_FAULTS   packet rules instead of the file's: "drop:rate=0.01; delay:nth=3,delay=10us"
#pragma once

#include <string>

#include "base/config/environment.hpp"
#include "base/config/names.hpp"
#include "device/soft/config.hpp"

namespace verbatim::soft {

using config::Environment;
using config::Warn;

// This process's environment; warnings go to the log.
[[nodiscard]] DeviceConfig read_settings();

// Of the environment only names that start with VERBATIM_SOFT_ are looked at. A key that nobody knows is a warning with
// its place and the nearest known one. Throws Error: invalid_argument with place, name, value and what is allowed;
// not_found for a file that isn't there.
[[nodiscard]] DeviceConfig read_settings(const Environment& environment, const Warn& warn);

// The text of conf/soft.toml: every knob with its default, range and meaning.
[[nodiscard]] std::string sample_settings();

}  // namespace verbatim::soft
