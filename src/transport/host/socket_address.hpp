// An IP address with a port, as a value.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace verbatim::transport::host {

class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t bytes);

  // A number written out, "10.1.2.3" or "fe80::1%eth0"; nothing if it is a name. Never asks a resolver.
  [[nodiscard]] static std::optional<SocketAddress> numeric(const std::string& host, std::uint16_t port);
  // A socket's own end, or the other one's; nothing if it has none.
  [[nodiscard]] static std::optional<SocketAddress> local_of(int socket);
  [[nodiscard]] static std::optional<SocketAddress> peer_of(int socket);

  [[nodiscard]] const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t size() const noexcept { return bytes_; }
  [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] SocketAddress with_port(std::uint16_t port) const;

  [[nodiscard]] bool is_any() const noexcept;       // 0.0.0.0 or ::
  [[nodiscard]] bool is_loopback() const noexcept;  // 127.0.0.0/8 or ::1
  [[nodiscard]] bool is_link_local() const noexcept;
  [[nodiscard]] std::string to_string() const;  // "10.1.2.3:7000", "[::1]:7000"

  friend bool operator==(const SocketAddress& a, const SocketAddress& b) { return a.to_string() == b.to_string(); }

 private:
  sockaddr_storage storage_{};
  socklen_t bytes_ = 0;
};

}  // namespace verbatim::transport::host
