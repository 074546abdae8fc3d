#include "transport/host/socket_address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "transport/control/address.hpp"

namespace verbatim::transport::host {
namespace {

template <typename Kind>
Kind as(const sockaddr_storage& storage) {
  Kind address;
  std::memcpy(&address, &storage, sizeof(address));
  return address;
}

std::uint32_t ipv4_of(const sockaddr_storage& storage) {
  return ntohl(as<sockaddr_in>(storage).sin_addr.s_addr);
}

template <typename Ask>
std::optional<SocketAddress> ask(Ask question) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(storage);
  if (question(reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return std::nullopt;
  return SocketAddress(reinterpret_cast<sockaddr*>(&storage), bytes);
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t bytes)
    : bytes_(std::min<socklen_t>(bytes, sizeof(storage_))) {
  std::memcpy(&storage_, address, bytes_);
}

std::optional<SocketAddress> SocketAddress::numeric(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  return SocketAddress(found->ai_addr, found->ai_addrlen).with_port(port);
}

std::optional<SocketAddress> SocketAddress::local_of(int socket) {
  return ask([&](sockaddr* address, socklen_t* bytes) { return ::getsockname(socket, address, bytes); });
}

std::optional<SocketAddress> SocketAddress::peer_of(int socket) {
  return ask([&](sockaddr* address, socklen_t* bytes) { return ::getpeername(socket, address, bytes); });
}

std::uint16_t SocketAddress::port() const noexcept {
  return ntohs(family() == AF_INET6 ? as<sockaddr_in6>(storage_).sin6_port : as<sockaddr_in>(storage_).sin_port);
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const {
  SocketAddress address = *this;
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  const std::uint16_t network_order = htons(port);
  std::memcpy(reinterpret_cast<char*>(&address.storage_) + offsetof(sockaddr_in, sin_port), &network_order,
              sizeof(network_order));
  return address;
}

bool SocketAddress::is_any() const noexcept {
  if (family() != AF_INET6) return ipv4_of(storage_) == INADDR_ANY;
  const auto address = as<sockaddr_in6>(storage_);
  return IN6_IS_ADDR_UNSPECIFIED(&address.sin6_addr);
}

bool SocketAddress::is_loopback() const noexcept {
  if (family() != AF_INET6) return ipv4_of(storage_) >> 24 == 127;
  const auto address = as<sockaddr_in6>(storage_);
  return IN6_IS_ADDR_LOOPBACK(&address.sin6_addr);
}

bool SocketAddress::is_link_local() const noexcept {
  if (family() != AF_INET6) return ipv4_of(storage_) >> 16 == 0xa9fe;  // 169.254.0.0/16
  const auto address = as<sockaddr_in6>(storage_);
  return IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr);
}

std::string SocketAddress::to_string() const {
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(data(), size(), host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  std::string text = host.data();
  // A dual-stack socket shows IPv4 peers as ::ffff:10.1.2.3; people know them without.
  constexpr std::string_view mapped = "::ffff:";
  if (text.starts_with(mapped) && text.find('.') != std::string::npos) text.erase(0, mapped.size());
  return control::to_string(control::Address{text, port()});
}

}  // namespace verbatim::transport::host
