// load_config() of the public header, with what verbatim-info tells besides: where each value came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config/environment.hpp"
#include "base/config/names.hpp"
#include "verbatim/config.hpp"

namespace verbatim::config {

// Variables that say which files are read, rather than what a knob is.
inline constexpr std::string_view config_variable = "VERBATIM_CONFIG";                // the user's file
inline constexpr std::string_view system_config_variable = "VERBATIM_SYSTEM_CONFIG";  // the system's file
inline constexpr std::string_view profile_variable = "VERBATIM_PROFILE";
inline constexpr std::string_view default_system_config = "/etc/verbatim.toml";

struct Origin {
  ConfigOrigin from = ConfigOrigin::built_in;
  std::string place;  // "verbatim.toml:12", a variable's name, an override as it was given; empty if built in
};

struct LoadedConfig {
  Config config;
  std::string profile;          // empty: none
  std::vector<Origin> origins;  // of each of knobs(), in their order
};

// Throws as load_config(). `warn` is called once for each thing that is odd; in strict mode each throws instead.
[[nodiscard]] LoadedConfig load(const ConfigSources& sources, const Environment& environment, const Warn& warn);

}  // namespace verbatim::config

namespace verbatim {

[[nodiscard]] const char* to_string(ConfigOrigin origin);

}  // namespace verbatim
