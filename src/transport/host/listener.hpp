// A listening socket: where it is bound, and which address others can reach it by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/host/descriptor.hpp"
#include "transport/host/resolver.hpp"
#include "transport/host/socket_address.hpp"

namespace verbatim::transport::host {

struct Listener {
  // Enough for every peer of a large job to connect at once; the kernel cuts it to net.core.somaxconn.
  static constexpr int backlog = 4096;

  Descriptor socket;    // non-blocking
  SocketAddress bound;  // with the port that it got
};

// As ControlLinks::listen(). A name that only means the loopback, as a host's own often does ("127.0.1.1"), stands for
// every address, unless it says "localhost". Blocks while the name is looked up.
[[nodiscard]] Listener open_listener(const std::string& host, std::uint16_t first_port, std::uint16_t last_port,
                                     const LookUp& look_up);

// What to tell peers: `bound` itself, or for "every address" the best of the host's own: one that is routed first,
// IPv4 before IPv6, the loopback only if there is nothing else.
[[nodiscard]] SocketAddress choose_advertised(const SocketAddress& bound,
                                              const std::vector<SocketAddress>& host_addresses);

// The host's own addresses, that of its default route first.
[[nodiscard]] std::vector<SocketAddress> host_addresses();

}  // namespace verbatim::transport::host
