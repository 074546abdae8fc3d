// One setting as it was written, and what it can be read as. Every reader throws Error(invalid_argument) that says
// where the value stands, its name, the value, and what is allowed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace verbatim::config {

struct Value {
  std::string where;  // "verbatim.toml:12", or "environment"
  std::string name;   // as the user wrote it
  std::string text;
};

[[noreturn]] void refuse(const Value& value, std::string_view allowed);

// A number beyond every limit: written "unlimited", held as the largest one.
inline constexpr std::uint64_t unlimited = UINT64_MAX;
inline constexpr std::string_view unlimited_text = "unlimited";

// Both ends of a range are allowed. Durations count in nanoseconds.
struct Range {
  std::uint64_t least = 0;
  std::uint64_t most = unlimited;
};
enum class Unit : std::uint8_t { none, bytes, nanoseconds, hexadecimal };
[[nodiscard]] std::string describe(Range range, Unit unit);

// Decimal, or hexadecimal with 0x. No sign, no unit. `unit` is how the range is shown.
[[nodiscard]] std::uint64_t read_count(const Value& value, Range range, Unit unit = Unit::none);
[[nodiscard]] std::uint64_t read_size(const Value& value, Range range);
[[nodiscard]] Duration read_duration(const Value& value, Range range);
[[nodiscard]] bool read_flag(const Value& value);
// As long as the range says, in characters.
[[nodiscard]] std::string read_text(const Value& value, Range range);

[[nodiscard]] std::string_view trim(std::string_view text);
// Cuts at each separator and trims the parts; of nothing, nothing.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

// The names of an enumeration's values.
template <typename Enum>
struct Name {
  std::string_view text;
  Enum value;
};
template <typename Names>
[[nodiscard]] std::string list(const Names& names) {
  std::string texts;
  for (const auto& name : names) texts += (texts.empty() ? "" : ", ") + std::string(name.text);
  return texts;
}
template <typename Enum>
[[nodiscard]] Enum read_name(const Value& value, std::span<const Name<Enum>> names) {
  const std::string_view text = trim(value.text);
  for (const auto& name : names) {
    if (text == name.text) return name.value;
  }
  refuse(value, list(names));
}
template <typename Enum>
[[nodiscard]] std::string_view show_name(Enum value, std::span<const Name<Enum>> names) {
  for (const auto& name : names) {
    if (value == name.value) return name.text;
  }
  return {};
}

}  // namespace verbatim::config
