#include "conformance/link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

namespace verbatim::conformance {

Link::~Link() {
  close(fd_);
}

void Link::send(const std::vector<std::uint8_t>& message) {
  if (message.size() > longest_message) throw std::runtime_error("a message to the other side is too long");
  const auto length = static_cast<std::uint32_t>(message.size());
  std::vector<std::uint8_t> framed(sizeof length + message.size());
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&length), sizeof length, framed.begin());
  std::copy(message.begin(), message.end(), framed.begin() + sizeof length);
  std::size_t sent = 0;
  while (sent < framed.size()) {
    const ssize_t bytes = ::send(fd_, framed.data() + sent, framed.size() - sent, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) throw std::runtime_error("the process of the other side is gone");
    sent += static_cast<std::size_t>(bytes);
  }
}

std::optional<std::vector<std::uint8_t>> Link::receive(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::uint32_t length = 0;
  if (!receive_bytes(&length, sizeof length, deadline)) return std::nullopt;
  if (length > longest_message) throw std::runtime_error("a message of the other side is too long");
  std::vector<std::uint8_t> message(length);
  if (!receive_bytes(message.data(), length, deadline)) return std::nullopt;
  return message;
}

bool Link::receive_bytes(void* to, std::size_t bytes, std::chrono::steady_clock::time_point deadline) {
  auto* next = static_cast<std::uint8_t*>(to);
  while (bytes > 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) throw std::runtime_error("the process of the other side does not answer");
    const ssize_t got = ::recv(fd_, next, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace verbatim::conformance
