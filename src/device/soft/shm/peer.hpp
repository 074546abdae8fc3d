// Another device (or our own, in loopback) as a sender sees it: its instance file, our slot there, the ring to it.
#pragma once

#include "base/clock.hpp"
#include "device/soft/shm/registry.hpp"
#include "device/soft/shm/ring.hpp"
#include "device/soft/shm/segment_views.hpp"
#include "device/soft/shm/tables.hpp"

namespace verbatim::soft::shm {

// What a device knows of itself and every peer is told.
struct Self {
  const Registry* registry = nullptr;
  Instance* instance = nullptr;
  InstanceId id;
  ProcessIdentity process;
  ibv_gid gid{};  // the first of the device: the way back to us
  std::uint32_t ring_bytes = 0;
  bool takes_part_in_barriers = false;
};

// What the target allowed when it was last asked: its tables' entries need not be read again while neither has changed.
struct Permission {
  PublishedRegion region;
  PublishedQueuePair queue_pair;
};

class Peer {
 public:
  // Makes the ring, takes a slot and announces it. Throws Error: no_space if the file system or the peer's slots are
  // used up (with used and limit).
  Peer(const Self& self, Mapping instance);
  // Leaves the slot: the peer reads what is in the ring and then lets go of it.
  ~Peer();
  // In a forked child: the slot is the parent's.
  void forked() { slot_ = nullptr; }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] RingWriter& ring() { return writer_; }
  [[nodiscard]] const RingWriter& ring() const { return writer_; }
  [[nodiscard]] Instance& instance() { return *instance_; }
  [[nodiscard]] const Instance& instance() const { return *instance_; }
  [[nodiscard]] InstanceId id() const { return id_; }
  [[nodiscard]] const ProcessIdentity& process() const { return process_; }
  [[nodiscard]] PeerSlot& slot() { return *slot_; }
  [[nodiscard]] SegmentViews& segments() { return segments_; }
  [[nodiscard]] Permission& permission() { return permission_; }
  // Of us or of the peer, one can't be made to pass a barrier, or can't make others.
  [[nodiscard]] bool placing_needs_fence() const { return placing_needs_fence_; }

  // Tells a receiver that does not poll our ring that something is in it; wakes its helper if that sleeps.
  void ring_doorbell();

  // False once the process has closed the device; one that died has not.
  [[nodiscard]] bool device_open() const {
    return instance_->state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(InstanceState::open);
  }
  // False once the process is gone or has closed the device. Costs system calls.
  [[nodiscard]] bool alive() const { return device_open() && process_.alive(); }
  // The peer could not make use of our ring.
  [[nodiscard]] bool refused() const {
    return SlotClaim::state(slot_->claim.load(std::memory_order_acquire)) == SlotState::refused;
  }

 private:
  std::uint32_t claim_slot(const Self& self);

  RingWriter writer_;
  Instance* instance_;
  PeerSlot* slot_ = nullptr;
  std::uint32_t slot_index_ = 0;
  bool placing_needs_fence_;
  InstanceId id_;
  ProcessIdentity process_;
  SegmentViews segments_;
  Permission permission_;
  const Directory* directory_;
  std::string ring_name_;
  Mapping instance_mapping_;
  Mapping ring_mapping_;
};

}  // namespace verbatim::soft::shm
