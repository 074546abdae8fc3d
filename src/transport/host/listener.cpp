#include "transport/host/listener.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "base/error.hpp"

namespace verbatim::transport::host {
namespace {

std::string words(int problem) {
  return std::generic_category().message(problem);
}

int set_option(int socket, int level, int option, int value) {
  return ::setsockopt(socket, level, option, &value, sizeof(value));
}

// Empty with errno on failure.
Descriptor try_listen(const SocketAddress& address) {
  Descriptor socket = Descriptor::make(
      [&] { return ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP); });
  if (!socket) return {};
  // A port whose last connections are in TIME_WAIT is free; two that listen on one port are still refused.
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family() == AF_INET6 && address.is_any()) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket.get(), address.data(), address.size()) != 0 || ::listen(socket.get(), Listener::backlog) != 0) {
    const int problem = errno;
    socket.close();
    errno = problem;
  }
  return socket;
}

std::vector<SocketAddress> every_address() {
  return {*SocketAddress::numeric("::", 0), *SocketAddress::numeric("0.0.0.0", 0)};
}

// Where to bind, best first.
std::vector<SocketAddress> candidates(const std::string& host, const LookUp& look_up) {
  if (host.empty()) return every_address();
  if (const auto number = SocketAddress::numeric(host, 0)) return {*number};
  LookUpAnswer answer = look_up(host);
  if (answer.addresses.empty()) {
    throw Error(ErrorCode::not_found,
                fmt::format("bootstrap.host \"{}\" can't be looked up: {}; give a number, or nothing for every address",
                            host, answer.problem));
  }
  std::vector<SocketAddress> beyond_this_host = answer.addresses;
  std::erase_if(beyond_this_host, [](const SocketAddress& address) { return address.is_loopback(); });
  if (!beyond_this_host.empty()) return beyond_this_host;
  return host == "localhost" ? answer.addresses : every_address();
}

bool family_is_missing(int problem) {
  return problem == EAFNOSUPPORT || problem == EADDRNOTAVAIL;
}

}  // namespace

Listener open_listener(const std::string& host, std::uint16_t first_port, std::uint16_t last_port,
                       const LookUp& look_up) {
  const std::uint16_t last = last_port == 0 ? first_port : last_port;
  if (last < first_port) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("ports {} to {}: the last is below the first", first_port, last));
  }
  const std::vector<SocketAddress> hosts = candidates(host, look_up);
  std::string refusals;
  int problem = 0;
  for (unsigned port = first_port; port <= last; ++port) {
    for (const SocketAddress& one : hosts) {
      const SocketAddress address = one.with_port(static_cast<std::uint16_t>(port));
      Descriptor socket = try_listen(address);
      if (socket) {
        const SocketAddress bound = SocketAddress::local_of(socket.get()).value_or(address);
        return {std::move(socket), bound};
      }
      problem = errno;
      if (port == first_port || port == last) {
        refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "; ", address.to_string(), words(problem));
      }
      // Of "every address" in two families the second is for hosts without the first.
      if (!family_is_missing(problem)) break;
    }
  }
  const bool busy = problem == EADDRINUSE;
  throw Error(
      busy                ? ErrorCode::busy
      : problem == EACCES ? ErrorCode::permission
                          : ErrorCode::invalid_argument,
      fmt::format("can't listen on port{}: {}{}",
                  last == first_port ? fmt::format(" {}", first_port) : fmt::format("s {} to {}", first_port, last),
                  refusals,
                  busy ? "; \"ss -ltnp\" shows who holds it; choose other ports (bootstrap.port_first, "
                         "bootstrap.port_last) or 0 for any"
                       : ""));
}

SocketAddress choose_advertised(const SocketAddress& bound, const std::vector<SocketAddress>& host_addresses) {
  if (!bound.is_any()) return bound;
  const auto rank = [&](const SocketAddress& address) {
    return (address.is_loopback() ? 4 : 0) + (address.is_link_local() ? 2 : 0) + (address.family() == AF_INET ? 0 : 1);
  };
  const SocketAddress* best = nullptr;
  for (const SocketAddress& address : host_addresses) {
    if (bound.family() == AF_INET && address.family() != AF_INET) continue;
    if (best == nullptr || rank(address) < rank(*best)) best = &address;
  }
  return best != nullptr ? best->with_port(bound.port()) : SocketAddress::numeric("127.0.0.1", bound.port()).value();
}

std::vector<SocketAddress> host_addresses() {
  std::vector<SocketAddress> addresses;
  // Nothing is sent: connecting a datagram socket only asks the routing table. 192.0.2.1 and 2001:db8::1 are set aside
  // for documentation (RFC 5737, RFC 3849), so only a default route leads there.
  for (const char* far_away : {"192.0.2.1", "2001:db8::1"}) {
    const SocketAddress target = SocketAddress::numeric(far_away, 9).value();
    const Descriptor socket = Descriptor::make([&] { return ::socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0); });
    if (!socket || ::connect(socket.get(), target.data(), target.size()) != 0) continue;
    if (const auto own = SocketAddress::local_of(socket.get())) addresses.push_back(*own);
  }
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return addresses;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(found, &::freeifaddrs);
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family == AF_INET) addresses.emplace_back(one->ifa_addr, sizeof(sockaddr_in));
    if (family == AF_INET6) addresses.emplace_back(one->ifa_addr, sizeof(sockaddr_in6));
  }
  return addresses;
}

}  // namespace verbatim::transport::host
