// Slots of one size in one registered region: where messages are sent from and received into.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "mem/region.hpp"

namespace verbatim::mem {

// Belongs to one worker's thread. After it is made nothing allocates and everything takes constant time.
class Slab {
 public:
  using Index = std::uint32_t;
  static constexpr std::size_t line_bytes = 64;  // slots begin on a line of the cache, and share none

  // `slot_bytes` is rounded up to whole lines. Throws Error: invalid_argument for 0 slots, 0 bytes or more than fits an
  // address space, and as RegisteredRegion::allocate().
  Slab(const Registrar& registrar, std::size_t slot_bytes, Index slots, Access access,
       const MemoryPlacement& placement);

  // The slot given back last, for what of it is still in the cache; nothing if all are taken.
  [[nodiscard]] std::optional<Index> take() noexcept {
    if (free_.empty()) return std::nullopt;
    const Index index = free_.back();
    free_.pop_back();
    return index;
  }
  // Each taken slot once.
  void give_back(Index index) noexcept {
    assert(index < slots_ && free_.size() < slots_);
    free_.push_back(index);
  }

  [[nodiscard]] std::byte* address(Index index) const noexcept {
    assert(index < slots_);
    return region_.address() + std::size_t{index} * slot_bytes_;
  }
  // Of any byte within a slot.
  [[nodiscard]] Index index_of(const std::byte* address) const noexcept {
    assert(contains(address));
    return static_cast<Index>(static_cast<std::size_t>(address - region_.address()) / slot_bytes_);
  }
  [[nodiscard]] bool contains(const std::byte* address) const noexcept {
    return address >= region_.address() && address < region_.address() + std::size_t{slots_} * slot_bytes_;
  }

  [[nodiscard]] std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  [[nodiscard]] Index slots() const noexcept { return slots_; }
  [[nodiscard]] Index available() const noexcept { return static_cast<Index>(free_.size()); }
  [[nodiscard]] LKey lkey() const noexcept { return region_.lkey(); }
  [[nodiscard]] RKey rkey() const noexcept { return region_.rkey(); }
  [[nodiscard]] const RegisteredRegion& region() const noexcept { return region_; }

 private:
  std::size_t slot_bytes_;
  Index slots_;
  RegisteredRegion region_;
  std::vector<Index> free_;  // a stack, its room reserved; not in the slots, which belong to the device
};

}  // namespace verbatim::mem
