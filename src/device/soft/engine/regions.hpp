// Memory regions and their keys: what local and remote work may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "device/soft/engine/wire.hpp"

namespace verbatim::soft {

// Ids of protection domains; 0 is none.
using DomainId = std::uint32_t;

class RegionTable {
 public:
  explicit RegionTable(std::uint32_t max_regions) : max_regions_(max_regions) {}

  // Room for one more? Keys are index << 8 | variant: a key that was used once comes back only after 256 turns.
  [[nodiscard]] std::optional<std::uint32_t> add(DomainId domain, std::uint64_t address, std::uint64_t length,
                                                 std::uint32_t access);
  void remove(std::uint32_t key);
  // What `key` gives access to from now on; the key stays.
  void change(std::uint32_t key, DomainId domain, std::uint64_t address, std::uint64_t length, std::uint32_t access);

  [[nodiscard]] const RegionView* find(std::uint32_t key) const {
    const std::uint32_t index = key >> 8;
    if (index >= regions_.size() || regions_[index].key != key || key == 0) return nullptr;
    return &regions_[index];
  }

  // Whether work of a queue pair in `domain` may read (or write) that memory locally.
  [[nodiscard]] bool allows_local(const Piece& piece, DomainId domain, bool write) const {
    const RegionView* region = find(piece.lkey.value);
    return region != nullptr && region->protection_domain == domain &&
           (!write || (region->access & IBV_ACCESS_LOCAL_WRITE) != 0) &&
           covers(*region, reinterpret_cast<std::uint64_t>(piece.address), piece.length);
  }

  // Whether a remote request may do `access` (IBV_ACCESS_REMOTE_*) there through a queue pair in `domain`.
  [[nodiscard]] bool allows_remote(RKey key, std::uint64_t address, std::uint64_t length, DomainId domain,
                                   std::uint32_t access) const {
    const RegionView* region = find(key.value);
    return region != nullptr && region->protection_domain == domain && (region->access & access) == access &&
           covers(*region, address, length);
  }

  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::uint64_t pinned_bytes() const { return pinned_bytes_; }

 private:
  static bool covers(const RegionView& region, std::uint64_t address, std::uint64_t length) {
    return address >= region.address && length <= region.length && address - region.address <= region.length - length;
  }

  std::uint32_t max_regions_;
  std::uint32_t count_ = 0;
  std::uint64_t pinned_bytes_ = 0;
  std::vector<RegionView> regions_{RegionView{}};  // by key >> 8; entry 0 is never used, so that key 0 is never valid
  std::vector<std::uint8_t> variants_{0};          // by index: the low byte of the key handed out last
  std::vector<std::uint32_t> free_;
};

}  // namespace verbatim::soft
