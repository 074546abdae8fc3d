#include "device/soft/shm/peer.hpp"

#include <fmt/format.h>

#include <new>

#include "base/error.hpp"
#include "device/soft/shm/futex.hpp"

namespace verbatim::soft::shm {

Peer::Peer(const Self& self, Mapping instance)
    : instance_(reinterpret_cast<Instance*>(instance.data())),
      placing_needs_fence_(!self.takes_part_in_barriers || instance_->placing_needs_fence.load() != 0),
      id_{instance_->id},
      process_(instance_->owner()),
      segments_(self.registry->directory(), id_),
      directory_(&self.registry->directory()),
      ring_name_(ring_name(self.id, id_)),
      instance_mapping_(std::move(instance)) {
  // A ring of ours that the peer never mapped, from before it was given up.
  directory_->remove(ring_name_);
  const FileDescriptor file = directory_->create(ring_name_, ring_control_bytes + self.ring_bytes);
  try {
    ring_mapping_ = Mapping::ring(file, ring_control_bytes, self.ring_bytes);
    const auto slots = static_cast<std::uint32_t>(self.ring_bytes / slot_bytes);
    auto* control = new (ring_mapping_.data()) RingControl;
    control->version = layout_version;
    control->slots = slots;
    control->sender = self.id.value;
    control->receiver = id_.value;
    control->sender_pid = self.process.pid;
    control->sender_start_time = self.process.start_time;
    control->probe_address = reinterpret_cast<std::uintptr_t>(&self.instance->id);
    control->sender_gid = self.gid;
    control->magic = ring_magic;
    writer_ = RingWriter(control, ring_mapping_.data() + ring_control_bytes, slots);
    slot_index_ = claim_slot(self);
  } catch (...) {
    directory_->remove(ring_name_);
    throw;
  }
  slot_ = &instance_->slots[slot_index_];
  slot_->sender.store(self.id.value, std::memory_order_relaxed);
  slot_->start_time.store(self.process.start_time, std::memory_order_relaxed);
  slot_->placement.store(0, std::memory_order_relaxed);
  slot_->claim.store(SlotClaim::make(self.process.pid, SlotState::announced), std::memory_order_release);
  ring_doorbell();
}

std::uint32_t Peer::claim_slot(const Self& self) {
  for (std::uint32_t index = 0; index < max_peers; ++index) {
    std::uint64_t seen = instance_->slots[index].claim.load(std::memory_order_relaxed);
    if (SlotClaim::state(seen) != SlotState::free) continue;
    // Raised before the claim, so that a claimed slot is never beyond it.
    std::uint32_t limit = instance_->slots_limit.load(std::memory_order_relaxed);
    while (limit <= index && !instance_->slots_limit.compare_exchange_weak(limit, index + 1)) {
    }
    if (instance_->slots[index].claim.compare_exchange_strong(
            seen, SlotClaim::make(self.process.pid, SlotState::claimed), std::memory_order_seq_cst)) {
      return index;
    }
  }
  throw Error(ErrorCode::no_space,
              fmt::format("the soft device of process {} has {} of {} peers that may send to it; close some of them",
                          process_.pid, max_peers, max_peers));
}

Peer::~Peer() {
  if (slot_ == nullptr) return;  // forked
  std::uint64_t seen = slot_->claim.load(std::memory_order_acquire);
  const std::uint64_t leaving = SlotClaim::make(SlotClaim::pid(seen), SlotState::leaving);
  while (!slot_->claim.compare_exchange_weak(seen, leaving, std::memory_order_release)) {
  }
  ring_doorbell();
  // A living peer that has not yet mapped the ring will, and removes its name then.
  if (!alive()) directory_->remove(ring_name_);
}

void Peer::ring_doorbell() {
  const std::uint32_t word = slot_index_ / 64;
  // Sequentially consistent: this comes after the packet and before the look at `sleeping`.
  instance_->doorbell[word].fetch_or(1ULL << (slot_index_ % 64));
  instance_->doorbell_summary.fetch_or(1ULL << word);
  wake_if_standing_by(instance_->sleeping);
}

}  // namespace verbatim::soft::shm
