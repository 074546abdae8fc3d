#include "device/soft/shm/inbound_rings.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "base/log.hpp"
#include "device/soft/shm/futex.hpp"
#include "device/soft/shm/process_memory.hpp"

namespace verbatim::soft::shm {

void InboundRings::look_at_next(InboundRing& ring) {
  if (polls() - ring.last_traffic > silence_limit) {
    cool_down(ring);  // puts another one under the cursor
  } else {
    next_hot();
  }
}

void InboundRings::next_hot() {
  burst_ = 0;
  if (++cursor_ >= hot_.size()) cursor_ = 0;
}

InboundRings::Found InboundRings::poll_cold() {
  if (self_.instance->doorbell_summary.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    answer_doorbell();
    // Who asks whether anything has arrived must not be told no because of the way it came.
    for (cursor_ = 0; cursor_ < hot_.size(); ++cursor_) {
      const std::uint64_t word = hot_[cursor_]->reader.peek();
      if (word != 0) return {hot_[cursor_], word};
    }
    cursor_ = 0;
  }
  if (cold_.empty()) return {};
  if (++cold_cursor_ >= cold_.size()) cold_cursor_ = 0;
  InboundRing* ring = cold_[cold_cursor_];
  const std::uint64_t word = ring->reader.peek();
  if (word == 0) return {};
  heat_up(*ring);
  return {ring, word};
}

void InboundRings::answer_doorbell() {
  Instance& instance = *self_.instance;
  // The summary first: a bell that is rung meanwhile is then seen next time.
  std::uint64_t words = instance.doorbell_summary.exchange(0) & ((1ULL << doorbell_words) - 1);
  for (; words != 0; words &= words - 1) {
    const auto word = static_cast<std::uint32_t>(std::countr_zero(words));
    std::uint64_t bits = instance.doorbell[word].exchange(0);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t slot = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (!by_slot_[slot]) accept(slot);
      if (by_slot_[slot] && by_slot_[slot]->heat == Heat::cold) heat_up(*by_slot_[slot]);
    }
  }
}

void InboundRings::accept(std::uint32_t index) {
  PeerSlot& slot = self_.instance->slots[index];
  const InstanceId sender{slot.sender.load(std::memory_order_relaxed)};
  std::uint64_t claim = slot.claim.load(std::memory_order_acquire);
  const SlotState state = SlotClaim::state(claim);
  if (state != SlotState::announced && state != SlotState::leaving) return;
  try {
    by_slot_[index] = open_ring(index, sender);
  } catch (const Error& error) {
    log().warn("a peer's ring can't be used: {}", error.what());
  }
  if (!by_slot_[index]) return refuse(index, claim);
  self_.registry->directory().remove(ring_name(sender, self_.id));
  cold_.push_back(by_slot_[index].get());
  // A sender that leaves meanwhile wins; what it left in the ring is still read.
  if (state == SlotState::announced) {
    slot.claim.compare_exchange_strong(claim, SlotClaim::make(SlotClaim::pid(claim), SlotState::accepted));
  }
}

// The slot stays the sender's, who may be using it, until it leaves.
void InboundRings::refuse(std::uint32_t index, std::uint64_t claim) {
  ++refused_;
  if (SlotClaim::state(claim) == SlotState::leaving) return detach(index);
  self_.instance->slots[index].claim.compare_exchange_strong(
      claim, SlotClaim::make(SlotClaim::pid(claim), SlotState::refused));
}

std::unique_ptr<InboundRing> InboundRings::open_ring(std::uint32_t slot, InstanceId sender) {
  const OpenedFile opened = self_.registry->directory().open(ring_name(sender, self_.id));
  if (opened.bytes < ring_control_bytes + min_ring_bytes || opened.bytes > ring_control_bytes + max_ring_bytes)
    return {};
  const std::size_t bytes = opened.bytes - ring_control_bytes;
  if (!std::has_single_bit(bytes)) return {};
  auto ring = std::make_unique<InboundRing>();
  ring->mapping = Mapping::ring(opened.file, ring_control_bytes, bytes);
  auto* control = reinterpret_cast<RingControl*>(ring->mapping.data());
  if (control->magic != ring_magic || control->version != layout_version) return {};
  if (control->sender != sender.value || control->receiver != self_.id.value) return {};
  ring->reader =
      RingReader(control, ring->mapping.data() + ring_control_bytes, static_cast<std::uint32_t>(bytes / slot_bytes));
  ring->slot = slot;
  ring->sender = sender;
  ring->process = {control->sender_pid, control->sender_start_time};
  const ibv_gid gid = control->sender_gid;
  ring->from = &paths_.heard_from(gid, sender);
  ring->reader.set_reach(probe(ring->process.pid, control->probe_address, sender));
  return ring;
}

void InboundRings::heat_up(InboundRing& ring) {
  std::erase(cold_, &ring);
  cursor_ = hot_.size();
  hot_.push_back(&ring);
  burst_ = 0;
  ring.heat = Heat::hot;
  ring.last_traffic = polls();
  ring.reader.set_attention(Attention::hot);
  // Its sender won't ring any more: a helper that relies on that must know that somebody polls.
  wake_if_standing_by(self_.instance->sleeping);
}

void InboundRings::cool_down(InboundRing& ring) {
  std::erase(hot_, &ring);
  if (cursor_ >= hot_.size()) cursor_ = 0;
  cold_.push_back(&ring);
  ring.heat = Heat::cold;
  ring.reader.set_attention(Attention::cold);
}

void InboundRings::abandon(InboundRing& ring) {
  std::erase(hot_, &ring);
  std::erase(cold_, &ring);
  if (cursor_ >= hot_.size()) cursor_ = 0;
  ring.heat = Heat::abandoned;
  ring.reader.set_attention(Attention::abandoned);
  ++abandoned_;
}

void InboundRings::detach(std::uint32_t index) {
  if (InboundRing* ring = by_slot_[index].get()) {
    std::erase(hot_, ring);
    std::erase(cold_, ring);
    if (cursor_ >= hot_.size()) cursor_ = 0;
    by_slot_[index].reset();
  }
  PeerSlot& slot = self_.instance->slots[index];
  slot.sender.store(0, std::memory_order_relaxed);
  slot.placement.store(0, std::memory_order_relaxed);
  slot.claim.store(SlotClaim::make(0, SlotState::free), std::memory_order_release);
}

void InboundRings::reap(const InboundRing* keep, ProcessRoll& roll) {
  const std::uint32_t limit = std::min(self_.instance->slots_limit.load(std::memory_order_relaxed), max_peers);
  for (std::uint32_t index = 0; index < limit; ++index) {
    const InboundRing* ring = by_slot_[index].get();
    if (ring == nullptr) {
      reap_without_ring(index);
      continue;
    }
    const bool alive = roll.alive(ring->process);
    const bool empty = ring->heat == Heat::abandoned || ring->reader.peek() == 0;
    if (ring == keep || !empty) continue;
    const std::uint64_t claim = self_.instance->slots[index].claim.load(std::memory_order_acquire);
    if (SlotClaim::state(claim) == SlotState::leaving || !alive) detach(index);
  }
}

void InboundRings::reap_without_ring(std::uint32_t index) {
  const PeerSlot& slot = self_.instance->slots[index];
  const std::uint64_t claim = slot.claim.load(std::memory_order_acquire);
  switch (SlotClaim::state(claim)) {
    case SlotState::free:
      return;
    case SlotState::announced:
    case SlotState::leaving:
      return accept(index);  // its bell was lost
    case SlotState::claimed:
    case SlotState::accepted:
    case SlotState::refused:
      if (!ProcessIdentity{SlotClaim::pid(claim), 0}.alive()) detach(index);
      return;
  }
  detach(index);  // a state that nobody could have set
}

void InboundRings::cool_all() {
  while (!hot_.empty()) cool_down(*hot_.back());
}

bool InboundRings::anything_arrived() {
  if (self_.instance->doorbell_summary.load(std::memory_order_acquire) != 0) return true;
  return std::any_of(cold_.begin(), cold_.end(), [](const InboundRing* ring) { return ring->reader.peek() != 0; });
}

}  // namespace verbatim::soft::shm
