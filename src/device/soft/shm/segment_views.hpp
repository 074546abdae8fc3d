// A peer's mappable memory as we have mapped it: each segment once, when it is first needed.
#pragma once

#include <array>

#include "device/soft/shm/registry.hpp"
#include "device/soft/shm/tables.hpp"

namespace verbatim::soft::shm {

class SegmentViews {
 public:
  SegmentViews(const Directory& directory, InstanceId owner) : directory_(directory), owner_(owner) {}

  // `length` bytes at `address` of the owner's memory, which lie in `region`, or nullptr if they can't be reached here.
  [[nodiscard]] std::byte* reach(const PublishedRegion& region, std::uint64_t address, std::uint64_t length) {
    const std::uint32_t index = region.location.segment - 1;
    if (index >= max_segments) return nullptr;
    if (views_[index].serial != region.location.serial) [[unlikely]]
      map(index, region.location.serial);
    const Mapping& mapping = views_[index].mapping;
    const std::uint64_t offset = region.location.offset + (address - region.view.address);
    if (offset > mapping.bytes() || length > mapping.bytes() - offset) return nullptr;
    return mapping.data() + offset;
  }

  // Unmaps what the owner has given up.
  void drop_stale(const Instance& owner);

 private:
  struct View {
    std::uint32_t serial = 0;  // of what is mapped, or could not be
    Mapping mapping;
  };
  void map(std::uint32_t index, std::uint32_t serial);

  const Directory& directory_;
  InstanceId owner_;
  std::array<View, max_segments> views_;
};

}  // namespace verbatim::soft::shm
