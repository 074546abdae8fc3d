// The timers, counts and sizes of a connection: durations and bytes for people, the codes of the InfiniBand
// specification for devices. Nothing else in Verbatim knows a code. None has a default: those are the configuration's.
//
// A duration becomes the nearest code that is not below it. The codes with a meaning of their own (ack timeout 0 and
// rnr_retry 7 are infinite) are had only by asking for `infinite`.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

#include "base/clock.hpp"

namespace verbatim::qp {

struct Infinite {};
inline constexpr Infinite infinite{};

// How long a requester waits after an RNR NAK before it sends again, as the responder asks it to: min_rnr_timer, 5 bits
// (specification, volume 1, 9.7.5.2.8, table 45).
class RnrTimer {
 public:
  static constexpr std::uint8_t highest_code = 31;

  // More than 0 and at most 655.36ms (whose code is 0), or throws Error(invalid_argument).
  explicit RnrTimer(Duration at_least);
  // A code as a device reports it; throws above 31.
  [[nodiscard]] static RnrTimer from_code(std::uint8_t code);

  [[nodiscard]] constexpr std::uint8_t code() const { return code_; }
  [[nodiscard]] Duration duration() const;
  friend constexpr bool operator==(RnrTimer, RnrTimer) = default;

 private:
  struct Code {
    std::uint8_t value;
  };
  explicit constexpr RnrTimer(Code code) : code_(code.value) {}
  std::uint8_t code_;
};

// How long a requester waits for an acknowledgement before it sends again: 4.096 µs · 2^code, 5 bits (specification,
// volume 1, 9.7.6.1.3; a device may take up to four times as long).
class AckTimeout {
 public:
  static constexpr std::uint8_t highest_code = 31;

  // More than 0 and at most 4.096 µs · 2^31 (about 8796s), or throws Error(invalid_argument). The shortest is 8.192 µs.
  explicit AckTimeout(Duration at_least);
  // Never sends again: a lost packet is never noticed by the device.
  explicit constexpr AckTimeout(Infinite) : code_(infinite_code) {}
  // A code as a device reports it; throws above 31.
  [[nodiscard]] static AckTimeout from_code(std::uint8_t code);

  [[nodiscard]] constexpr std::uint8_t code() const { return code_; }
  // Nothing if infinite.
  [[nodiscard]] std::optional<Duration> duration() const;
  friend constexpr bool operator==(AckTimeout, AckTimeout) = default;

 private:
  static constexpr std::uint8_t infinite_code = 0;
  struct Code {
    std::uint8_t value;
  };
  explicit constexpr AckTimeout(Code code) : code_(code.value) {}
  std::uint8_t code_;
};

// How often a requester sends again when no acknowledgement came: 3 bits, 7 is a number like any other.
class RetryCount {
 public:
  static constexpr std::uint8_t highest = 7;

  // 0 to 7, or throws Error(invalid_argument).
  explicit RetryCount(unsigned count);

  [[nodiscard]] constexpr std::uint8_t code() const { return count_; }
  friend bool operator==(RetryCount, RetryCount) = default;

 private:
  std::uint8_t count_;
};

// How often a requester sends again after RNR NAKs: 3 bits, of which 7 means for ever.
class RnrRetry {
 public:
  static constexpr std::uint8_t infinite_code = 7;

  // 0 to 6, or throws Error(invalid_argument).
  explicit RnrRetry(unsigned count);
  explicit constexpr RnrRetry(Infinite) : code_(infinite_code) {}

  [[nodiscard]] constexpr std::uint8_t code() const { return code_; }
  friend constexpr bool operator==(RnrRetry, RnrRetry) = default;

 private:
  std::uint8_t code_;
};

// The largest payload of one packet. Exactly 256, 512, 1024, 2048 or 4096 bytes: rounding either way would break a
// path.
class PathMtu {
 public:
  // Throws Error(invalid_argument) for any other number of bytes.
  [[nodiscard]] static PathMtu from_bytes(std::uint32_t bytes);
  // As a port reports it (ibv_port_attr::active_mtu); throws for a value outside the enum.
  [[nodiscard]] static PathMtu from_code(ibv_mtu code);

  [[nodiscard]] constexpr ibv_mtu code() const { return code_; }
  [[nodiscard]] constexpr std::uint32_t bytes() const { return 128U << code_; }
  friend constexpr auto operator<=>(PathMtu, PathMtu) = default;

 private:
  explicit constexpr PathMtu(ibv_mtu code) : code_(code) {}
  ibv_mtu code_;
};

}  // namespace verbatim::qp
