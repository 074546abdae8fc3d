#include "device/soft/shm/shm_wire.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/system_random.hpp"
#include "device/soft/engine/copy_small.hpp"
#include "device/soft/shm/fetch.hpp"
#include "device/soft/shm/futex.hpp"
#include "device/soft/shm/placement.hpp"
#include "device/soft/shm/processor_barrier.hpp"

namespace verbatim::soft::shm {
namespace {

constexpr std::uint32_t largest_mtu = 4096;
// Up to here two copies are cheaper than the look-ups and, without mappable memory, the system call of one.
constexpr std::uint32_t reference_threshold = 8 * 1024;

void check_ring(const DeviceConfig& config) {
  if (std::has_single_bit(config.ring_bytes) && config.ring_bytes >= min_ring_bytes &&
      config.ring_bytes <= max_ring_bytes) {
    return;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("ring_bytes of soft device {} is {}; a power of two from {} to {} is allowed", config.name,
                          config.ring_bytes, min_ring_bytes, max_ring_bytes));
}

// Payload that a packet has with it, wherever it lies.
std::uint32_t payload_carried(const PacketHeader& header) {
  return header.has(packet_flag::placed) ? 0 : header.payload_bytes;
}

void copy_extension(Packet& to, const std::byte* from, std::size_t bytes) {
  auto* extension = reinterpret_cast<std::byte*>(&to) + sizeof(PacketHeader);
  if (bytes == 16) {
    std::memcpy(extension, from, 16);
  } else {
    std::memcpy(extension, from, bytes);
  }
}

void encode(std::byte* to, const Packet& packet, std::size_t encoded) {
  std::memcpy(to, &packet.header, sizeof packet.header);
  if (encoded != sizeof packet.header) {
    std::memcpy(to + sizeof packet.header, &packet.rdma, encoded - sizeof packet.header);
  }
}

std::byte* gather(std::byte* to, std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    copy_small(to, piece.address, piece.length);
    to += piece.length;
  }
  return to;
}

}  // namespace

ShmWire::ShmWire(const DeviceConfig& config, std::span<const ibv_gid> gids)
    : inbound_rings_(self_, paths_),
      // The longest train fits into half a ring, as the largest packet that a ring takes.
      train_limit_(static_cast<std::uint32_t>((largest_packet(config.ring_bytes) - max_encoded_bytes) / largest_mtu)),
      payload_by_reference_(config.payload_by_reference),
      gids_(gids.begin(), gids.end()),
      registry_(config.directory),
      paths_(self_),
      arena_(self_) {
  check_ring(config);
  if (gids.empty()) throw Error(ErrorCode::invalid_argument, "a soft device needs a GID to be found by");
  self_.registry = &registry_;
  self_.id = {system_seed()};
  self_.process = ProcessIdentity::self();
  self_.gid = gids.front();
  self_.ring_bytes = config.ring_bytes;
  self_.takes_part_in_barriers = take_part_in_barriers();
  instance_mapping_ = registry_.enter(self_.id, gids);
  self_.instance = reinterpret_cast<Instance*>(instance_mapping_.data());
  self_.instance->placing_needs_fence.store(self_.takes_part_in_barriers ? 0 : 1);
  self_.instance->state.store(static_cast<std::uint32_t>(InstanceState::open), std::memory_order_release);
}

ShmWire::~ShmWire() {
  if (self_.instance == nullptr) return;  // forked
  self_.instance->state.store(static_cast<std::uint32_t>(InstanceState::closed), std::memory_order_release);
  registry_.leave(self_.id, gids_);
}

void ShmWire::forked() {
  self_.instance = nullptr;
  paths_.forked();
  arena_.forked();
}

Path& ShmWire::path_to(const ibv_gid& /*source*/, const ibv_gid& destination) {
  ShmPath& path = paths_.path(destination);
  paths_.resolve(path);
  return path;
}

SendResult ShmWire::send(Path& path_base, const Packet& packet, std::span<const Piece> pieces, Qpn /*source*/,
                         Time now) {
  auto& path = static_cast<ShmPath&>(path_base);
  Peer* peer = path.peer;
  if (peer == nullptr) [[unlikely]] {
    peer = paths_.try_resolve(path, now);
    if (peer == nullptr) {
      ++counters_.packets_lost;
      return SendResult::sent;
    }
  }
  const std::uint32_t payload = payload_carried(packet.header);
  if (payload > reference_threshold) [[unlikely]] {
    const auto generation = may_refer(*peer, packet.header, pieces);
    if (generation) return send_reference(path, packet, pieces, *generation, now);
  }
  const std::size_t encoded = encoded_bytes(packet.header);
  const std::uint32_t slots = slots_for(encoded + payload);
  std::byte* to = peer->ring().reserve(slots);
  if (to == nullptr) [[unlikely]]
    return send_without_room(path, now);
  encode(to, packet, encoded);
  if (payload != 0) gather(to + encoded, pieces);
  finish(*peer, slots, PayloadForm::in_ring);
  return SendResult::sent;
}

inline void ShmWire::finish(Peer& peer, std::uint32_t slots, PayloadForm form) {
  peer.ring().publish(slots, form);
  if (peer.ring().attention() != Attention::hot) [[unlikely]]
    peer.ring_doorbell();
}

// Only what stays as it is until the target has answered: an unreliable request is complete once it is sent.
std::optional<std::uint32_t> ShmWire::may_refer(const Peer& peer, const PacketHeader& header,
                                                std::span<const Piece> pieces) const {
  if (!payload_by_reference_ || header.service() != Service::rc || pieces.size() > max_reference_pieces) return {};
  const auto queue_pair = find_queue_pair(*self_.instance, header.source_qpn());
  if (!queue_pair) return {};
  const bool readable = peer.ring().reach() == Reach::readable;
  for (const Piece& piece : pieces) {
    const auto region = find_region(*self_.instance, piece.lkey.value);
    if (!region || (!readable && region->location.segment == 0)) return {};
  }
  return queue_pair->view.generation;
}

SendResult ShmWire::send_reference(ShmPath& path, const Packet& packet, std::span<const Piece> pieces,
                                   std::uint32_t generation, Time now) {
  Peer& peer = *path.peer;
  const std::size_t encoded = encoded_bytes(packet.header);
  const std::uint32_t slots = slots_for(encoded + Reference::bytes(pieces.size()));
  std::byte* to = peer.ring().reserve(slots);
  if (to == nullptr) return send_without_room(path, now);
  encode(to, packet, encoded);
  encode_reference(to + encoded, generation, pieces);
  finish(peer, slots, PayloadForm::by_reference);
  return SendResult::sent;
}

SendResult ShmWire::send_without_room(ShmPath& path, Time now) {
  Peer& peer = *path.peer;
  const bool unread = peer.ring().broken() || peer.ring().attention() == Attention::abandoned;
  if (!unread) {
    if (now < path.check_at) return SendResult::full;
    path.check_at = now + ShmPath::check_interval;
    // Had it been read since, there is no need to ask the kernel.
    const bool stuck = std::exchange(path.checked_position, peer.ring().position()) == peer.ring().position();
    if (!peer.refused() && (!stuck || peer.alive())) return SendResult::full;
    paths_.drop(peer);
  }
  ++counters_.packets_lost;
  return SendResult::sent;
}

const InboundPacket* ShmWire::receive(Time /*now*/) {
  if (holding_ != nullptr) return &inbound_;
  const InboundRings::Found found = inbound_rings_.poll();
  if (found.ring == nullptr) {
    if (errands_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      run_errands();
    return nullptr;
  }
  return take(*found.ring, found.word) ? &inbound_ : nullptr;
}

// Everything is copied before it is believed: the sender may still be writing there.
bool ShmWire::take(InboundRing& ring, std::uint64_t word) {
  if (!ring.reader.sane(word)) [[unlikely]] {
    inbound_rings_.abandon(ring);
    return false;
  }
  const std::byte* bytes = ring.reader.bytes();
  const std::uint32_t slots = ReadyWord::slots(word);
  const std::size_t available = slots * slot_bytes - ready_word_bytes;
  PacketHeader& header = inbound_.packet.header;
  std::memcpy(&header, bytes, sizeof header);
  const std::size_t encoded = encoded_bytes(header);
  const char* reason = available < encoded ? "shorter than its header" : nullptr;
  if (reason == nullptr) reason = take_payload(ReadyWord::form(word), bytes + encoded, available - encoded);
  if (reason != nullptr) [[unlikely]] {
    ++counters_.packets_refused;
    inbound_rings_.release(ring, slots);
    return false;
  }
  if (encoded != sizeof header) copy_extension(inbound_.packet, bytes + sizeof header, encoded - sizeof header);
  inbound_.from = ring.from;
  holding_ = &ring;
  holding_slots_ = slots;
  arrivals_.store(arrivals_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
}

const char* ShmWire::take_payload(PayloadForm form, const std::byte* bytes, std::size_t available) {
  const PacketHeader& header = inbound_.packet.header;
  if (form == PayloadForm::by_reference) [[unlikely]] {
    inbound_.payload = nullptr;
    const char* reason = refuse(header, UINT32_MAX);
    return reason != nullptr ? reason : decode_reference(reference_, bytes, available, payload_carried(header));
  }
  inbound_.payload = bytes;
  return refuse(header, header.has(packet_flag::placed) ? UINT32_MAX : available);
}

void ShmWire::release() {
  if (holding_ == nullptr) return;
  inbound_rings_.release(*holding_, holding_slots_);
  holding_ = nullptr;
}

void ShmWire::gids_changed(std::span<const ibv_gid> gids) {
  registry_.rename(self_.id, gids_, gids);
  gids_.assign(gids.begin(), gids.end());
  if (!gids_.empty()) self_.gid = gids_.front();
}

void ShmWire::keep_house() {
  inbound_rings_.reap(holding_, roll_);
  paths_.drop_dead(holding_ != nullptr ? holding_->from->peer : nullptr, roll_);
  roll_.forget_others();
}

void ShmWire::request_house_keeping() {
  if ((errands_.load(std::memory_order_acquire) & errand::keep_house) != 0) return;  // not done yet
  roll_.look();
  errands_.fetch_or(errand::keep_house, std::memory_order_release);
}

void ShmWire::run_errands() {
  const std::uint32_t errands = errands_.load(std::memory_order_acquire);
  if ((errands & errand::keep_house) != 0) keep_house();
  errands_.fetch_and(~errands, std::memory_order_release);
  if ((errands & errand::stand_by) != 0) stand_by();
}

// First everything that makes a sender wake us, then the look at what came before: whoever published something saw the
// one or is seen by the other.
void ShmWire::stand_by() {
  inbound_rings_.cool_all();
  sleep_word().store(static_cast<std::uint32_t>(Sleep::standing_by));
  barrier_everywhere();
  if (inbound_rings_.anything_arrived()) wake(sleep_word());
}

ShmWire::Counters ShmWire::counters() const {
  Counters counters = counters_;
  counters.rings_abandoned = inbound_rings_.abandoned();
  counters.peers_refused = inbound_rings_.refused();
  return counters;
}

bool ShmWire::place(Path& path, const Packet& packet, std::span<const Piece> pieces) {
  Peer* peer = static_cast<ShmPath&>(path).peer;
  return peer != nullptr && packet.rdma.length != 0 && place_write(*peer, packet, pieces);
}

bool ShmWire::fetch(const InboundPacket& inbound, std::uint32_t offset, std::span<const Piece> pieces) {
  if (inbound.payload != nullptr) {
    const std::byte* from = inbound.payload + offset;
    for (const Piece& piece : pieces) {
      copy_small(piece.address, from, piece.length);
      from += piece.length;
    }
    return true;
  }
  Peer* peer = paths_.try_resolve(*holding_->from);
  const bool fetched = peer != nullptr && peer->id() == holding_->sender &&
                       fetch_referred(*peer, inbound.packet.header.source_qpn(), reference_, offset, pieces);
  if (!fetched) ++counters_.fetches_failed;
  return fetched;
}

void ShmWire::region_registered(const RegionView& region) {
  publish(*self_.instance, region, arena_.locate(region.address, region.length).value_or(SegmentLocation{}));
}

void ShmWire::region_gone(std::uint32_t key) {
  const auto region = find_region(*self_.instance, key);
  if (!withdraw_region(*self_.instance, key) || wait_for_placements_into(*self_.instance, key)) return;
  ++counters_.placements_unfinished;
  if (region) arena_.retire(region->view.address);
}

void ShmWire::queue_pair_changed(const QueuePairView& queue_pair) {
  if (!publish(*self_.instance, queue_pair)) return;
  if (!wait_for_placements_through(*self_.instance, queue_pair.qpn)) ++counters_.placements_unfinished;
}

void ShmWire::queue_pair_gone(Qpn qpn) {
  if (!withdraw_queue_pair(*self_.instance, qpn)) return;
  if (!wait_for_placements_through(*self_.instance, qpn)) ++counters_.placements_unfinished;
}

}  // namespace verbatim::soft::shm
