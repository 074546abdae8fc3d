#include "device/soft/shm/reference.hpp"

#include <cstring>

namespace verbatim::soft::shm {

void encode_reference(std::byte* to, std::uint32_t generation, std::span<const Piece> pieces) {
  const auto count = static_cast<std::uint32_t>(pieces.size());
  std::memcpy(to, &generation, sizeof generation);
  std::memcpy(to + sizeof generation, &count, sizeof count);
  to += Reference::bytes(0);
  for (const Piece& piece : pieces) {
    const ReferencePiece encoded{reinterpret_cast<std::uintptr_t>(piece.address), piece.length, piece.lkey.value};
    std::memcpy(to, &encoded, sizeof encoded);
    to += sizeof encoded;
  }
}

const char* decode_reference(Reference& to, const std::byte* from, std::size_t available, std::uint32_t payload_bytes) {
  if (available < Reference::bytes(0)) return "reference cut short";
  std::memcpy(&to, from, Reference::bytes(0));
  if (to.pieces == 0 || to.pieces > max_reference_pieces) return "reference of no or too many pieces";
  if (available < Reference::bytes(to.pieces)) return "reference cut short";
  std::memcpy(to.piece.data(), from + Reference::bytes(0), to.pieces * sizeof(ReferencePiece));
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < to.pieces; ++i) total += to.piece[i].length;
  return total == payload_bytes ? nullptr : "reference of another length than the payload";
}

}  // namespace verbatim::soft::shm
