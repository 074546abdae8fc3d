// The environment as data, so that a test can bring its own.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace verbatim::config {

inline constexpr std::string_view environment_place = "environment";

// Names and values.
using Environment = std::map<std::string, std::string>;
[[nodiscard]] Environment environment_of_this_process();

// What a variable contains; empty if there is none.
[[nodiscard]] std::string_view find(const Environment& environment, const std::string& name);

// Names of variables are written in capitals.
[[nodiscard]] std::string in_capitals(std::string_view name);

}  // namespace verbatim::config
