#include "device/soft/shm/tables.hpp"

namespace verbatim::soft::shm {
namespace {

constexpr auto release = std::memory_order_release;

// Makes an entry's sequence odd for as long as it lives. Every field is stored with release, so that none is seen
// before the odd sequence is.
class Change {
 public:
  explicit Change(std::atomic<std::uint32_t>& sequence) : sequence_(sequence) {
    // Odd even if it was left odd: nobody else writes here, but a peer could.
    before_ = sequence_.load(std::memory_order_relaxed) | 1;
    sequence_.store(before_, std::memory_order_relaxed);
  }
  ~Change() { sequence_.store(before_ + 1, release); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  std::atomic<std::uint32_t>& sequence_;
  std::uint32_t before_;
};

bool placeable(const RegionEntry& entry) {
  return entry.segment.load(std::memory_order_relaxed) != 0 &&
         (entry.access.load(std::memory_order_relaxed) & IBV_ACCESS_REMOTE_WRITE) != 0;
}

}  // namespace

void publish(Instance& instance, const RegionView& region, const SegmentLocation& location) {
  const std::uint32_t index = region.key >> 8;
  if (index >= published_regions) return;
  RegionEntry& entry = instance.regions[index];
  const Change change(entry.sequence);
  entry.key.store(region.key, release);
  entry.protection_domain.store(region.protection_domain, release);
  entry.access.store(region.access, release);
  entry.address.store(region.address, release);
  entry.length.store(region.length, release);
  entry.segment.store(location.segment, release);
  entry.segment_serial.store(location.serial, release);
  entry.segment_offset.store(location.offset, release);
}

bool withdraw_region(Instance& instance, std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  if (index >= published_regions) return false;
  RegionEntry& entry = instance.regions[index];
  if (entry.key.load(std::memory_order_relaxed) != key) return false;
  const bool was_placeable = placeable(entry);
  const Change change(entry.sequence);
  entry.key.store(0, release);
  entry.segment.store(0, release);
  return was_placeable;
}

bool publish(Instance& instance, const QueuePairView& queue_pair) {
  QueuePairEntry& entry = instance.queue_pairs[queue_pair.qpn.value % published_queue_pairs];
  const std::uint32_t occupant = entry.qpn.load(std::memory_order_relaxed);
  const std::uint32_t us = QueuePairEntry::occupied | queue_pair.qpn.value;
  if (occupant != 0 && occupant != us) return false;
  const bool was_receiving = occupant == us && entry.receiving.load(std::memory_order_relaxed) != 0;
  const Change change(entry.sequence);
  entry.qpn.store(us, release);
  entry.connected_to.store(queue_pair.connected_to.value, release);
  entry.protection_domain.store(queue_pair.protection_domain, release);
  entry.access.store(queue_pair.access, release);
  entry.generation.store(queue_pair.generation, release);
  entry.receiving.store(queue_pair.receiving ? 1 : 0, release);
  return was_receiving && !queue_pair.receiving;
}

bool withdraw_queue_pair(Instance& instance, Qpn qpn) {
  QueuePairEntry& entry = instance.queue_pairs[qpn.value % published_queue_pairs];
  if (entry.qpn.load(std::memory_order_relaxed) != (QueuePairEntry::occupied | qpn.value)) return false;
  const bool was_receiving = entry.receiving.load(std::memory_order_relaxed) != 0;
  const Change change(entry.sequence);
  entry.qpn.store(0, release);
  entry.receiving.store(0, release);
  return was_receiving;
}

}  // namespace verbatim::soft::shm
