// A payload that stays at the sender until the receiver copies it: where it lies, under which keys, and which
// generation of the sending queue pair stands for it. Follows the encoded packet in the ring.
//
//   +----------------+----------------+------------------------+------------+------------+ …
//   | generation     | pieces         | address                | length     | key        | … pieces times
//   +----------------+----------------+------------------------+------------+------------+ …
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "device/soft/engine/wire.hpp"

namespace verbatim::soft::shm {

inline constexpr std::uint32_t max_reference_pieces = 32;

struct ReferencePiece {
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t key;
};
static_assert(sizeof(ReferencePiece) == 16);

struct Reference {
  std::uint32_t generation;
  std::uint32_t pieces;
  std::array<ReferencePiece, max_reference_pieces> piece;

  [[nodiscard]] static constexpr std::size_t bytes(std::size_t pieces) { return 8 + pieces * sizeof(ReferencePiece); }
};
static_assert(sizeof(Reference) == Reference::bytes(max_reference_pieces));

// Writes the reference; `to` has room for Reference::bytes(pieces.size()).
void encode_reference(std::byte* to, std::uint32_t generation, std::span<const Piece> pieces);

// Copies a reference out of `available` bytes. Why it can't be believed, or nullptr; it must describe `payload_bytes`.
[[nodiscard]] const char* decode_reference(Reference& to, const std::byte* from, std::size_t available,
                                           std::uint32_t payload_bytes);

}  // namespace verbatim::soft::shm
