// Walking over scatter/gather lists.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include "device/soft/engine/regions.hpp"

namespace verbatim::soft {

// The most pieces that one request has, whatever limits a device is configured with (limits are checked against it).
inline constexpr std::uint32_t piece_limit = 64;

// Part of a scatter/gather list: [offset, offset + bytes). Stops early where the list ends.
class PieceRange {
 public:
  PieceRange(std::span<const Piece> whole, std::uint64_t offset, std::uint64_t bytes) {
    for (const Piece& piece : whole) {
      if (bytes == 0 || count_ == piece_limit) break;
      if (offset >= piece.length) {
        offset -= piece.length;
        continue;
      }
      const auto take = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece.length - offset, bytes));
      new (&storage_[count_++]) Piece{piece.address + offset, take, piece.lkey};
      bytes -= take;
      offset = 0;
    }
  }
  [[nodiscard]] std::span<const Piece> pieces() const {
    return {std::launder(reinterpret_cast<const Piece*>(storage_.data())), count_};
  }

 private:
  // Raw storage: a kilobyte of zeroes per packet is more than the packet costs.
  struct alignas(Piece) Room {
    std::byte bytes[sizeof(Piece)];
  };
  std::size_t count_ = 0;
  std::array<Room, piece_limit> storage_;
};

// Whether every piece may be used locally. A piece of no bytes touches nothing, whatever its key.
[[nodiscard]] inline bool allowed(const RegionTable& regions, std::span<const Piece> pieces, DomainId domain,
                                  bool write) {
  return std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.length == 0 || regions.allows_local(piece, domain, write);
  });
}

// Copies to the pieces, in order, as many bytes as they hold.
inline void scatter(std::span<const Piece> pieces, const std::byte* from) {
  for (const Piece& piece : pieces) {
    if (piece.length == 0) continue;
    std::memcpy(piece.address, from, piece.length);
    from += piece.length;
  }
}

// Copies what the pieces hold to one place, in order.
inline void gather(std::span<const Piece> pieces, std::byte* to) {
  for (const Piece& piece : pieces) {
    if (piece.length == 0) continue;
    std::memcpy(to, piece.address, piece.length);
    to += piece.length;
  }
}

}  // namespace verbatim::soft
