#include "device/soft/settings/value.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.hpp"
#include "base/units.hpp"
#include "device/gid.hpp"

namespace verbatim::soft {
namespace {

std::uint64_t within(const Value& value, Range range, Unit unit, std::uint64_t number) {
  if (number < range.least || number > range.most) refuse(value, describe(range, unit));
  return number;
}

constexpr std::string_view gid_types[] = {"RoCE v1", "RoCE v2"};

}  // namespace

std::string describe(Range range, Unit unit) {
  if (unit == Unit::none && range.most == unlimited) return fmt::format("{} or more", range.least);
  if (unit == Unit::none) return fmt::format("{} to {}", range.least, range.most);
  return fmt::format("{} to {}", format_size(range.least),
                     range.most == unlimited ? unlimited_text : format_size(range.most));
}

void refuse(const Value& value, std::string_view allowed) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {} is '{}'; allowed: {}", value.where, value.name, value.text, allowed));
}

std::uint64_t read_count(const Value& value, Range range) {
  std::string_view digits = trim(value.text);
  const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (hexadecimal) digits.remove_prefix(2);
  std::uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, problem] = std::from_chars(digits.data(), end, number, hexadecimal ? 16 : 10);
  if (problem != std::errc{} || stopped != end) {
    refuse(value, fmt::format("a whole number without a unit, {}", describe(range, Unit::none)));
  }
  return within(value, range, Unit::none, number);
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

Duration read_duration(const Value& value) {
  try {
    return parse_duration(value.name, value.text);
  } catch (const Error&) {
    refuse(value, "a number and one of ns, us, ms, s, min, such as 10us");
  }
}

bool read_flag(const Value& value) {
  static constexpr Name<bool> names[] = {{"true", true}, {"false", false}};
  return read_name<bool>({value.where, value.name, std::string(trim(value.text))}, names);
}

double read_rate(const Value& value) {
  const std::string_view text = trim(value.text);
  double rate = 0;
  const auto [stopped, problem] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (problem != std::errc{} || stopped != text.data() + text.size() || !(rate >= 0 && rate <= 1)) {
    refuse(value, "a share of the packets, 0 to 1");
  }
  return rate;
}

std::string read_text(const Value& value, Range range) {
  const std::string_view text = trim(value.text);
  if (text.size() < range.least || text.size() > range.most) {
    refuse(value, fmt::format("{} characters", describe(range, Unit::none)));
  }
  return std::string(text);
}

GidConfig read_gid(const Value& value) {
  const std::string_view text = trim(value.text);
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string address(text.substr(0, space));
  const std::string_view type = trim(text.substr(space));
  GidConfig gid;
  in_addr ipv4{};
  if (inet_pton(AF_INET, address.c_str(), &ipv4) == 1) {
    gid.gid.raw[10] = gid.gid.raw[11] = 0xff;
    std::memcpy(gid.gid.raw + 12, &ipv4, sizeof ipv4);
  } else if (inet_pton(AF_INET6, address.c_str(), gid.gid.raw) != 1) {
    refuse(value, "an IPv4 or IPv6 address, such as 10.0.0.1 or fe80::1");
  }
  if (type == gid_types[0]) {
    gid.type = IBV_GID_TYPE_ROCE_V1;
  } else if (!type.empty() && type != gid_types[1]) {
    refuse(value, fmt::format("behind the address nothing, or {}", fmt::join(gid_types, " or ")));
  }
  return gid;
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

}  // namespace verbatim::soft
