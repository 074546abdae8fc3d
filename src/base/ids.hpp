// Numbers that must not be mixed: each kind is a type of its own with only the arithmetic that means something.
#pragma once

#include <compare>
#include <cstdint>

namespace verbatim {

// A queue pair's number: 24 bits (InfiniBand Architecture Specification, volume 1, 3.5.10).
struct Qpn {
  static constexpr std::uint32_t mask = 0xffffff;
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(Qpn, Qpn) = default;
};

// A packet sequence number: 24 bits, compared modulo 2^24. a before b when the way from a up to b is the shorter one
// (specification, volume 1, 9.7.2: at most 2^23 packets are outstanding).
class Psn {
 public:
  static constexpr std::uint32_t mask = 0xffffff;
  static constexpr std::int32_t half_range = 1 << 23;

  constexpr Psn() = default;
  constexpr explicit Psn(std::uint32_t value) : value_(value & mask) {}

  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  [[nodiscard]] constexpr Psn plus(std::uint32_t packets) const { return Psn(value_ + packets); }
  [[nodiscard]] constexpr Psn minus(std::uint32_t packets) const { return Psn(value_ - packets); }
  [[nodiscard]] constexpr Psn next() const { return plus(1); }
  [[nodiscard]] constexpr Psn previous() const { return minus(1); }

  // How far this one is ahead of `other`: -2^23 … 2^23-1.
  [[nodiscard]] constexpr std::int32_t distance_from(Psn other) const {
    return static_cast<std::int32_t>((value_ - other.value_) << 8) >> 8;
  }
  [[nodiscard]] constexpr bool before(Psn other) const { return distance_from(other) < 0; }
  [[nodiscard]] constexpr bool at_or_before(Psn other) const { return distance_from(other) <= 0; }
  friend constexpr bool operator==(Psn, Psn) = default;

 private:
  std::uint32_t value_ = 0;
};

// The two keys of a memory region. On the soft device they are equal in value, and still never interchangeable.
struct LKey {
  std::uint32_t value = 0;
  friend constexpr bool operator==(LKey, LKey) = default;
};
struct RKey {
  std::uint32_t value = 0;
  friend constexpr bool operator==(RKey, RKey) = default;
};

// Ports of a device count from 1; 0 is no port.
struct PortNumber {
  std::uint8_t value = 0;
  friend constexpr auto operator<=>(PortNumber, PortNumber) = default;
};

}  // namespace verbatim
