// What --config shows: every knob with its value, where that came from, and what else it could be.
#pragma once

#include <string>
#include <vector>

#include "base/config/load.hpp"

namespace verbatim::info {

struct Configuration {
  config::LoadedConfig loaded;
  std::vector<std::string> warnings;  // of names that nobody knows, and of values that are probably not meant
  std::string refusal;                // why the values don't fit together; empty if they do
};

// Throws Error as load_config() does.
[[nodiscard]] Configuration read_configuration(const ConfigSources& sources, const config::Environment& environment);

[[nodiscard]] std::string to_text(const Configuration& configuration);
[[nodiscard]] std::string to_json(const Configuration& configuration);

}  // namespace verbatim::info
