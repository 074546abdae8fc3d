#include "device/soft/shm/fetch.hpp"

#include <algorithm>
#include <cstring>

#include "device/soft/shm/process_memory.hpp"

namespace verbatim::soft::shm {
namespace {

// Goes over the source's pieces as over one range of bytes.
class Source {
 public:
  Source(Peer& peer, const Reference& reference) : peer_(peer), reference_(reference) {}

  bool skip(std::uint32_t bytes) {
    while (index_ < reference_.pieces && bytes >= reference_.piece[index_].length)
      bytes -= reference_.piece[index_++].length;
    used_ = bytes;
    return index_ < reference_.pieces || bytes == 0;
  }

  bool copy(std::byte* to, std::uint32_t bytes) {
    while (bytes != 0) {
      if (index_ >= reference_.pieces) return false;
      const ReferencePiece& piece = reference_.piece[index_];
      const std::uint32_t length = std::min(bytes, piece.length - used_);
      if (length != 0 && !copy_from(piece.address + used_, piece.key, to, length)) return false;
      to += length;
      bytes -= length;
      used_ += length;
      if (used_ == piece.length) {
        used_ = 0;
        ++index_;
      }
    }
    return true;
  }

 private:
  // The region is looked at before and after: an owner that takes it back meanwhile is noticed.
  bool copy_from(std::uint64_t address, std::uint32_t key, std::byte* to, std::uint32_t length) {
    const auto region = find_region(peer_.instance(), key);
    if (!region || !region->holds(address, length)) return false;
    if (const std::byte* from = peer_.segments().reach(*region, address, length)) {
      std::memcpy(to, from, length);
    } else if (!read_process_memory(peer_.process().pid, address, to, length)) {
      return false;
    }
    return still_stands(peer_.instance(), *region);
  }

  Peer& peer_;
  const Reference& reference_;
  std::uint32_t index_ = 0;
  std::uint32_t used_ = 0;  // of the piece at index_
};

bool stands(const Peer& peer, Qpn source, std::uint32_t generation) {
  const auto queue_pair = find_queue_pair(peer.instance(), source);
  return queue_pair && queue_pair->view.generation == generation;
}

}  // namespace

bool fetch_referred(Peer& peer, Qpn source, const Reference& reference, std::uint32_t offset,
                    std::span<const Piece> pieces) {
  if (!stands(peer, source, reference.generation)) return false;
  Source bytes(peer, reference);
  if (!bytes.skip(offset)) return false;
  for (const Piece& piece : pieces) {
    if (!bytes.copy(piece.address, piece.length)) return false;
  }
  return stands(peer, source, reference.generation);
}

}  // namespace verbatim::soft::shm
