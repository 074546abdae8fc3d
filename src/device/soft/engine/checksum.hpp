// The check that a packet carries where a wire damages some: CRC-32C over header, extension and payload, behind the
// payload.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "device/soft/engine/packet.hpp"

namespace verbatim::soft {

inline constexpr std::uint32_t checksum_bytes = 4;

[[nodiscard]] inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  static constexpr std::array<std::uint32_t, 256> table = [] {
    constexpr std::uint32_t reversed_polynomial = 0x82f63b78;
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t value = 0; value < made.size(); ++value) {
      std::uint32_t remainder = value;
      for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? reversed_polynomial : 0);
      made[value] = remainder;
    }
    return made;
  }();
  crc = ~crc;
  for (const std::byte byte : bytes) crc = table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

[[nodiscard]] inline std::uint32_t checksum_of(const Packet& packet, std::span<const std::byte> payload) {
  const auto header = std::as_bytes(std::span(&packet, 1)).first(encoded_bytes(packet.header));
  return crc32c(payload, crc32c(header, 0));
}

// The last checksum_bytes of `payload` are room for it.
inline void store_checksum(const Packet& packet, std::span<std::byte> payload) {
  const auto covered = payload.first(payload.size() - checksum_bytes);
  const std::uint32_t checksum = checksum_of(packet, covered);
  std::memcpy(payload.data() + covered.size(), &checksum, checksum_bytes);
}

[[nodiscard]] inline bool checksum_holds(const Packet& packet, std::span<const std::byte> payload) {
  if (payload.size() < checksum_bytes) return false;
  const auto covered = payload.first(payload.size() - checksum_bytes);
  const std::uint32_t checksum = checksum_of(packet, covered);
  return std::memcmp(payload.data() + covered.size(), &checksum, checksum_bytes) == 0;
}

}  // namespace verbatim::soft
