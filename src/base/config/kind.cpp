#include "base/config/kind.hpp"

#include <fmt/format.h>

#include "base/units.hpp"

namespace verbatim::config {

std::string quoted(std::string_view text) {
  return fmt::format("\"{}\"", text);
}

std::uint64_t Kind::read_number(const Value& value, Range narrow) const {
  if (unit == Unit::bytes) return read_size(value, narrow);
  if (narrow.most == unlimited && trim(value.text) == unlimited_text) return unlimited;
  return read_count(value, narrow, unit);
}

std::string Kind::show_number(std::uint64_t value) const {
  if (value == unlimited) return quoted(unlimited_text);
  if (unit == Unit::hexadecimal) return fmt::format("{:#x}", value);
  const std::string size = format_size(value);
  return unit == Unit::bytes && size != std::to_string(value) ? quoted(size) : std::to_string(value);
}

std::string Kind::show(Duration value) const {
  return quoted(format_duration(value));
}

std::string Kind::allowed(const std::string&) const {
  return fmt::format("{} characters", describe(range, Unit::none));
}

}  // namespace verbatim::config
