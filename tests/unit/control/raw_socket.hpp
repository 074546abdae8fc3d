// Plain TCP for tests: strangers, services of others, and a proxy that tears messages into single bytes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace verbatim::transport {

class RawSocket {
 public:
  RawSocket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit RawSocket(int fd) : fd_(fd) {}
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket() {
    if (fd_ >= 0) ::close(fd_);
  }

  // "127.0.0.1:port", as listen() returned it.
  static RawSocket connected_to(const std::string& address) {
    RawSocket socket;
    const sockaddr_in to = loopback(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    if (::connect(socket.fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
      throw std::runtime_error("can't connect to " + address);
    }
    return socket;
  }
  static RawSocket listening() {
    RawSocket socket;
    const sockaddr_in any = loopback(0);
    if (::bind(socket.fd_, reinterpret_cast<const sockaddr*>(&any), sizeof(any)) != 0 ||
        ::listen(socket.fd_, 16) != 0) {
      throw std::runtime_error("can't listen");
    }
    return socket;
  }
  [[nodiscard]] std::string address() const {
    sockaddr_in own{};
    socklen_t bytes = sizeof(own);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &bytes);
    return "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }
  [[nodiscard]] RawSocket accept() const { return RawSocket(::accept(fd_, nullptr, nullptr)); }
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  // Whether the other end has closed within `timeout_ms`; what it said is thrown away.
  [[nodiscard]] bool closed_within(int timeout_ms) const {
    std::array<char, 4096> buffer;
    for (pollfd ready{fd_, POLLIN, 0}; ::poll(&ready, 1, timeout_ms) > 0;) {
      if (::recv(fd_, buffer.data(), buffer.size(), 0) <= 0) return true;
    }
    return false;
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  int fd_;
};

// Forwards one connection to `target`, one byte at a time in each direction.
class OneByteProxy {
 public:
  explicit OneByteProxy(std::string target) : target_(std::move(target)), thread_([this] { run(); }) {}
  ~OneByteProxy() {
    ::shutdown(listener_.fd(), SHUT_RDWR);
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] std::string address() const { return listener_.address(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  void run() {
    const RawSocket in = listener_.accept();
    if (in.fd() < 0) return;
    const RawSocket out = RawSocket::connected_to(target_);
    while (!stop_) {
      std::array<pollfd, 2> ready{pollfd{in.fd(), POLLIN, 0}, pollfd{out.fd(), POLLIN, 0}};
      ::poll(ready.data(), ready.size(), 10);
      if (ready[0].revents != 0 && !forward(in, out)) return;
      if (ready[1].revents != 0 && !forward(out, in)) return;
    }
  }
  bool forward(const RawSocket& from, const RawSocket& to) {
    char byte = 0;
    if (::recv(from.fd(), &byte, 1, 0) != 1) return false;
    ++bytes_;
    return to.send({&byte, 1});
  }

  RawSocket listener_ = RawSocket::listening();
  std::string target_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> bytes_{0};
  std::thread thread_;
};

}  // namespace verbatim::transport
