// Regions and queue pairs as peers may look them up, without asking, while their owner changes them. One writer, the
// owner; readers take a copy that was whole at one moment, or nothing.
#pragma once

#include <optional>

#include "device/soft/engine/wire.hpp"
#include "device/soft/shm/layout.hpp"

namespace verbatim::soft::shm {

// Where a region lies in its owner's mappable memory.
struct SegmentLocation {
  std::uint32_t segment = 0;  // index + 1; 0: not there
  std::uint32_t serial = 0;
  std::uint64_t offset = 0;
};

struct PublishedRegion {
  RegionView view;
  SegmentLocation location;
  std::uint32_t sequence = 0;

  [[nodiscard]] bool holds(std::uint64_t address, std::uint64_t length) const {
    return address >= view.address && length <= view.length && address - view.address <= view.length - length;
  }
};

struct PublishedQueuePair {
  QueuePairView view;
  std::uint32_t sequence = 0;
};

// -- the owner's side ------------------------------------------------------------------------------------------------
// What is beyond the tables' bounds is not published, and nothing needs to know.
void publish(Instance& instance, const RegionView& region, const SegmentLocation& location);
// True if peers could have been placing there: it was published, mappable and writable.
[[nodiscard]] bool withdraw_region(Instance& instance, std::uint32_t key);
// True if it was published as receiving before and is not any more.
[[nodiscard]] bool publish(Instance& instance, const QueuePairView& queue_pair);
[[nodiscard]] bool withdraw_queue_pair(Instance& instance, Qpn qpn);

// -- anybody's side --------------------------------------------------------------------------------------------------
// A writer that died in the middle leaves an odd sequence for ever; so few looks are enough for one that lives.
inline constexpr int looks_at_changing_entry = 16;

[[nodiscard]] inline std::optional<PublishedRegion> find_region(const Instance& instance, std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  if (key == 0 || index >= published_regions) return std::nullopt;
  const RegionEntry& entry = instance.regions[index];
  constexpr auto acquire = std::memory_order_acquire;  // keeps the second look at the sequence behind the fields
  for (int look = 0; look < looks_at_changing_entry; ++look) {
    PublishedRegion region;
    region.sequence = entry.sequence.load(acquire);
    region.view.key = entry.key.load(acquire);
    region.view.protection_domain = entry.protection_domain.load(acquire);
    region.view.access = entry.access.load(acquire);
    region.view.address = entry.address.load(acquire);
    region.view.length = entry.length.load(acquire);
    region.location.segment = entry.segment.load(acquire);
    region.location.serial = entry.segment_serial.load(acquire);
    region.location.offset = entry.segment_offset.load(acquire);
    if ((region.sequence & 1) != 0 || entry.sequence.load(std::memory_order_relaxed) != region.sequence) continue;
    if (region.view.key != key) return std::nullopt;
    return region;
  }
  return std::nullopt;
}

[[nodiscard]] inline std::optional<PublishedQueuePair> find_queue_pair(const Instance& instance, Qpn qpn) {
  const QueuePairEntry& entry = instance.queue_pairs[qpn.value % published_queue_pairs];
  constexpr auto acquire = std::memory_order_acquire;
  for (int look = 0; look < looks_at_changing_entry; ++look) {
    PublishedQueuePair found;
    found.sequence = entry.sequence.load(acquire);
    const std::uint32_t occupant = entry.qpn.load(acquire);
    found.view.qpn = qpn;
    found.view.connected_to = {entry.connected_to.load(acquire)};
    found.view.protection_domain = entry.protection_domain.load(acquire);
    found.view.access = entry.access.load(acquire);
    found.view.generation = entry.generation.load(acquire);
    found.view.receiving = entry.receiving.load(acquire) != 0;
    if ((found.sequence & 1) != 0 || entry.sequence.load(std::memory_order_relaxed) != found.sequence) continue;
    if (occupant != (QueuePairEntry::occupied | qpn.value)) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

// Whether an entry is still what was found.
[[nodiscard]] inline bool still_stands(const Instance& instance, const PublishedRegion& region) {
  return instance.regions[region.view.key >> 8].sequence.load(std::memory_order_acquire) == region.sequence;
}
[[nodiscard]] inline bool still_stands(const Instance& instance, const PublishedQueuePair& found) {
  return instance.queue_pairs[found.view.qpn.value % published_queue_pairs].sequence.load(std::memory_order_acquire) ==
         found.sequence;
}

}  // namespace verbatim::soft::shm
