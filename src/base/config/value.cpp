#include "base/config/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/units.hpp"

namespace verbatim::config {
namespace {

std::uint64_t within(const Value& value, Range range, Unit unit, std::uint64_t number) {
  if (number < range.least || number > range.most) refuse(value, describe(range, unit));
  return number;
}

std::string bound(std::uint64_t number, Unit unit) {
  switch (unit) {
    case Unit::none:
      break;
    case Unit::bytes:
      return number == unlimited ? std::string(unlimited_text) : format_size(number);
    case Unit::nanoseconds:
      return format_duration(Duration(static_cast<Duration::rep>(number)));
    case Unit::hexadecimal:
      return fmt::format("{:#x}", number);
  }
  return fmt::format("{}", number);
}

}  // namespace

std::string describe(Range range, Unit unit) {
  if (range.most == unlimited && unit != Unit::bytes) return fmt::format("{} or more", bound(range.least, unit));
  return fmt::format("{} to {}", bound(range.least, unit), bound(range.most, unit));
}

void refuse(const Value& value, std::string_view allowed) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {} is '{}'; allowed: {}", value.where, value.name, value.text, allowed));
}

std::uint64_t read_count(const Value& value, Range range, Unit unit) {
  std::string_view digits = trim(value.text);
  const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (hexadecimal) digits.remove_prefix(2);
  std::uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, problem] = std::from_chars(digits.data(), end, number, hexadecimal ? 16 : 10);
  if (problem != std::errc{} || stopped != end) {
    refuse(value, fmt::format("a whole number without a unit, {}", describe(range, unit)));
  }
  return within(value, range, unit, number);
}

std::uint64_t read_size(const Value& value, Range range) {
  const std::string_view text = trim(value.text);
  if (text == unlimited_text) return within(value, range, Unit::bytes, unlimited);
  try {
    return within(value, range, Unit::bytes, parse_size(value.name, text));
  } catch (const Error&) {
    refuse(value, fmt::format("{}, in bytes, KiB, MiB or GiB, such as 64KiB", describe(range, Unit::bytes)));
  }
}

Duration read_duration(const Value& value, Range range) {
  try {
    const Duration duration = parse_duration(value.name, value.text);
    (void)within(value, range, Unit::nanoseconds, static_cast<std::uint64_t>(duration.count()));
    return duration;
  } catch (const Error&) {
    refuse(value, fmt::format("{}, with one of ns, us, ms, s, min, such as 10us", describe(range, Unit::nanoseconds)));
  }
}

bool read_flag(const Value& value) {
  static constexpr Name<bool> names[] = {{"true", true}, {"false", false}};
  return read_name<bool>(value, names);
}

std::string read_text(const Value& value, Range range) {
  const std::string_view text = trim(value.text);
  if (text.size() < range.least || text.size() > range.most) {
    refuse(value, fmt::format("{} characters", describe(range, Unit::none)));
  }
  return std::string(text);
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (trim(text).empty()) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

}  // namespace verbatim::config
