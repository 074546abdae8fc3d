// What only the soft device's settings can be read as, next to what any knob can (base/config/value.hpp).
#pragma once

#include "base/config/value.hpp"
#include "device/soft/config.hpp"

namespace verbatim::soft {

using config::Name;
using config::Range;
using config::Unit;
using config::Value;

// A share of the packets, 0 to 1.
[[nodiscard]] double read_rate(const Value& value);
// "10.0.0.1" (IPv4-mapped) or "fe80::1", and optionally the type: "10.0.0.1 RoCE v1"; RoCE v2 if it is left out.
[[nodiscard]] GidConfig read_gid(const Value& value);

}  // namespace verbatim::soft
