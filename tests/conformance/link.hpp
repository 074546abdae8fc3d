// Messages between a test and its second process: a length and as many bytes, over a socket pair.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace verbatim::conformance {

inline constexpr std::uint32_t longest_message = 64 << 20;

// Owns its end of the socket pair.
class Link {
 public:
  explicit Link(int fd) : fd_(fd) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  void send(const std::vector<std::uint8_t>& message);  // throws std::runtime_error if nobody is there any more
  // Nothing if the other end was closed; throws std::runtime_error if `patience` ran out first.
  std::optional<std::vector<std::uint8_t>> receive(std::chrono::milliseconds patience);

 private:
  bool receive_bytes(void* to, std::size_t bytes, std::chrono::steady_clock::time_point deadline);

  int fd_;
};

}  // namespace verbatim::conformance
