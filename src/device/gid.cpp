#include "device/gid.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace verbatim::device {

bool is_ipv4_mapped(const Gid& gid) noexcept {
  constexpr std::array<std::uint8_t, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(prefix.begin(), prefix.end(), gid.bytes.begin());
}

GidScope scope_of(const Gid& gid) noexcept {
  const auto& bytes = gid.bytes;
  if (is_ipv4_mapped(gid)) {
    if (bytes[12] == 127) return GidScope::loopback;                        // 127.0.0.0/8
    if (bytes[12] == 169 && bytes[13] == 254) return GidScope::link_local;  // 169.254.0.0/16
    return GidScope::routable;
  }
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return GidScope::link_local;  // fe80::/10
  if (gid == Gid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}) return GidScope::loopback;
  return GidScope::routable;
}

std::string to_string(const Gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, gid.bytes.data(), text.data(), text.size());
  return text.data();
}

const char* to_string(GidType type) noexcept {
  switch (type) {
    case GidType::infiniband:
      return "InfiniBand";
    case GidType::roce_v1:
      return "RoCE v1";
    case GidType::roce_v2:
      return "RoCE v2";
  }
  return "unknown";
}

}  // namespace verbatim::device
