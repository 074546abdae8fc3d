// Bytes that show where they belong: a shift, a swap or a piece of another message makes a difference.
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbatim::conformance {

// The high byte of a multiplicative hash, so that neighbours, pages and packets of equal offset all differ.
[[nodiscard]] constexpr std::uint8_t pattern_byte(std::uint32_t seed, std::size_t index) {
  const std::uint64_t mixed = (index + 1 + (static_cast<std::uint64_t>(seed) << 32)) * 0x9e3779b97f4a7c15;
  return static_cast<std::uint8_t>(mixed >> 56);
}

}  // namespace verbatim::conformance
