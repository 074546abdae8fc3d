// A GID as a value, with what its bytes say about how far the address reaches.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace verbatim::device {

// Network byte order, as in the GID table and on the wire.
struct Gid {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const Gid&, const Gid&) = default;
};

// Which packets a GID stands for. The same address is usually in the table once per RoCE version.
enum class GidType { infiniband, roce_v1, roce_v2 };

// How far the address reaches: beyond the subnet, on the link only, or not out of the host.
enum class GidScope { routable, link_local, loopback };

// An IPv4 address in ::ffff:0:0/96, the form in which RoCE carries it.
[[nodiscard]] bool is_ipv4_mapped(const Gid& gid) noexcept;
[[nodiscard]] GidScope scope_of(const Gid& gid) noexcept;

// As an IPv6 address in the canonical form of RFC 5952: "fe80::1", "::ffff:10.1.2.3".
[[nodiscard]] std::string to_string(const Gid& gid);
[[nodiscard]] const char* to_string(GidType type) noexcept;  // "RoCE v2"

}  // namespace verbatim::device
