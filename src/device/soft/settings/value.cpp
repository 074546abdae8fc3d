#include "device/soft/settings/value.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

namespace verbatim::soft {
namespace {

constexpr std::string_view gid_types[] = {"RoCE v1", "RoCE v2"};

}  // namespace

double read_rate(const Value& value) {
  const std::string_view text = config::trim(value.text);
  double rate = 0;
  const auto [stopped, problem] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (problem != std::errc{} || stopped != text.data() + text.size() || !(rate >= 0 && rate <= 1)) {
    config::refuse(value, "a share of the packets, 0 to 1");
  }
  return rate;
}

GidConfig read_gid(const Value& value) {
  const std::string_view text = config::trim(value.text);
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string address(text.substr(0, space));
  const std::string_view type = config::trim(text.substr(space));
  GidConfig gid;
  in_addr ipv4{};
  if (inet_pton(AF_INET, address.c_str(), &ipv4) == 1) {
    gid.gid.raw[10] = gid.gid.raw[11] = 0xff;
    std::memcpy(gid.gid.raw + 12, &ipv4, sizeof ipv4);
  } else if (inet_pton(AF_INET6, address.c_str(), gid.gid.raw) != 1) {
    config::refuse(value, "an IPv4 or IPv6 address, such as 10.0.0.1 or fe80::1");
  }
  if (type == gid_types[0]) {
    gid.type = IBV_GID_TYPE_ROCE_V1;
  } else if (!type.empty() && type != gid_types[1]) {
    config::refuse(value, fmt::format("behind the address nothing, or {}", fmt::join(gid_types, " or ")));
  }
  return gid;
}

}  // namespace verbatim::soft
