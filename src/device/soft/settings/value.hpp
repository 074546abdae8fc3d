// One setting as it was written, and what it can be read as. Every reader throws Error(invalid_argument) that says
// where the value stands, its name, the value, and what is allowed.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "device/soft/config.hpp"

namespace verbatim::soft {

struct Value {
  std::string where;  // "soft.toml:12", or "environment"
  std::string name;   // as the user wrote it
  std::string text;
};

[[noreturn]] void refuse(const Value& value, std::string_view allowed);

// A size beyond every limit: written "unlimited", held as the largest number.
inline constexpr std::uint64_t unlimited = UINT64_MAX;
inline constexpr std::string_view unlimited_text = "unlimited";

// Both ends of a range are allowed.
struct Range {
  std::uint64_t least = 0;
  std::uint64_t most = unlimited;
};
enum class Unit { none, bytes };
[[nodiscard]] std::string describe(Range range, Unit unit);

// Decimal, or hexadecimal with 0x. No sign, no unit.
[[nodiscard]] std::uint64_t read_count(const Value& value, Range range);
[[nodiscard]] std::uint64_t read_size(const Value& value, Range range);
[[nodiscard]] Duration read_duration(const Value& value);
[[nodiscard]] bool read_flag(const Value& value);
[[nodiscard]] double read_rate(const Value& value);
// As long as the range says, in characters.
[[nodiscard]] std::string read_text(const Value& value, Range range);
// "10.0.0.1" (IPv4-mapped) or "fe80::1", and optionally the type: "10.0.0.1 RoCE v1"; RoCE v2 if it is left out.
[[nodiscard]] GidConfig read_gid(const Value& value);

// The names of an enumeration's values.
template <typename Enum>
struct Name {
  std::string_view text;
  Enum value;
};
template <typename Enum>
[[nodiscard]] Enum read_name(const Value& value, std::span<const Name<Enum>> names) {
  std::string allowed;
  for (const auto& name : names) {
    if (value.text == name.text) return name.value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(name.text);
  }
  refuse(value, allowed);
}
template <typename Enum>
[[nodiscard]] std::string_view show_name(Enum value, std::span<const Name<Enum>> names) {
  for (const auto& name : names) {
    if (value == name.value) return name.text;
  }
  return {};
}

[[nodiscard]] std::string_view trim(std::string_view text);
// Cuts at each separator and trims the parts; of nothing, nothing.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

}  // namespace verbatim::soft
