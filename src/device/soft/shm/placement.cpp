#include "device/soft/shm/placement.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "device/soft/shm/copy.hpp"
#include "device/soft/shm/processor_barrier.hpp"
#include "device/soft/shm/tables.hpp"

namespace verbatim::soft::shm {
namespace {

constexpr std::chrono::seconds placement_wait_limit{1};
constexpr int looks_before_yield = 1000;
constexpr std::uint32_t cache_line_bytes = 64;
constexpr std::uint32_t small_write_bytes = 2 * cache_line_bytes;

// The peer waits until this is gone, or we are.
class Announcement {
 public:
  Announcement(Peer& peer, std::uint32_t key, Qpn qpn) : word_(peer.slot().placement) {
    word_.store(Placement::make(key, qpn.value), std::memory_order_relaxed);
    order_store_before_load(peer.placing_needs_fence());
  }
  ~Announcement() { word_.store(0, std::memory_order_release); }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

 private:
  std::atomic<std::uint64_t>& word_;
};

// May `source` write into the region through the queue pair that it is connected to?
bool allows(const PublishedRegion& region, const PublishedQueuePair& queue_pair, Qpn source) {
  return region.location.segment != 0 && (region.view.access & queue_pair.view.access & IBV_ACCESS_REMOTE_WRITE) != 0 &&
         region.view.protection_domain == queue_pair.view.protection_domain && queue_pair.view.receiving &&
         queue_pair.view.connected_to == source;
}

bool ask_permission(Peer& peer, const Packet& packet) {
  const auto region = find_region(peer.instance(), packet.rdma.rkey);
  if (!region) return false;
  const auto queue_pair = find_queue_pair(peer.instance(), packet.header.destination());
  if (!queue_pair || !allows(*region, *queue_pair, packet.header.source_qpn())) return false;
  peer.permission() = {*region, *queue_pair};
  return true;
}

bool has_permission(Peer& peer, const Packet& packet) {
  const Permission& given = peer.permission();
  const bool given_for_this = given.region.view.key == packet.rdma.rkey &&
                              given.queue_pair.view.qpn == packet.header.destination() &&
                              given.queue_pair.view.connected_to == packet.header.source_qpn();
  return (given_for_this && still_stands(peer.instance(), given.region) &&
          still_stands(peer.instance(), given.queue_pair)) ||
         ask_permission(peer, packet);
}

template <typename Matches>
bool wait_while(Instance& instance, Matches matches) {
  barrier_everywhere();
  const auto deadline = std::chrono::steady_clock::now() + placement_wait_limit;
  const std::uint32_t limit = std::min(instance.slots_limit.load(std::memory_order_acquire), max_peers);
  for (std::uint32_t index = 0; index < limit; ++index) {
    const PeerSlot& slot = instance.slots[index];
    for (int look = 1; matches(slot.placement.load(std::memory_order_acquire)); ++look) {
      if (look % looks_before_yield != 0) continue;
      const ProcessIdentity peer{SlotClaim::pid(slot.claim.load(std::memory_order_acquire)),
                                 slot.start_time.load(std::memory_order_relaxed)};
      if (!peer.alive()) break;
      if (std::chrono::steady_clock::now() > deadline) return false;
      ::sched_yield();
    }
  }
  return true;
}

}  // namespace

bool place_write(Peer& peer, const Packet& packet, std::span<const Piece> pieces) {
  const RdmaHeader& target = packet.rdma;
  const Announcement announcement(peer, target.rkey, packet.header.destination());
  if (!has_permission(peer, packet)) return false;
  const PublishedRegion& region = peer.permission().region;
  if (!region.holds(target.remote_address, target.length)) return false;
  std::byte* to = peer.segments().reach(region, target.remote_address, target.length);
  if (to == nullptr) return false;
  for (const Piece& piece : pieces) {
    copy_in_order(to, piece.address, piece.length);
    to += piece.length;
  }
  // Who writes little writes more of it behind, as into a ring. A line that the reader has had is fetched meanwhile,
  // two ahead: the next is what a reader who keeps up is looking at.
  if (target.length <= small_write_bytes && region.holds(target.remote_address, target.length + 2 * cache_line_bytes)) {
    prefetch_for_writing(to + cache_line_bytes);
  }
  return true;
}

bool wait_for_placements_into(Instance& instance, std::uint32_t key) {
  return wait_while(instance, [key](std::uint64_t word) { return Placement::is_into(word, key); });
}

bool wait_for_placements_through(Instance& instance, Qpn qpn) {
  return wait_while(instance, [qpn](std::uint64_t word) { return Placement::is_through(word, qpn.value); });
}

}  // namespace verbatim::soft::shm
