// "host:port", as people write it and as sockets give it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace verbatim::transport::control {

struct Address {
  std::string host;  // a name, or a number without brackets; empty: every address
  std::uint16_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
};

// "host:port", "10.1.2.3:7000", "[fe80::1%eth0]:7000". Throws Error(invalid_argument) where the host or the port is
// missing, or the port isn't 1 to 65535.
[[nodiscard]] Address parse_address(std::string_view text);

// The same with parts left out for the configuration to fill in: "host", ":port", "".
[[nodiscard]] Address parse_listen_address(std::string_view text);

[[nodiscard]] std::string to_string(const Address& address);  // brackets where the host has colons

}  // namespace verbatim::transport::control
