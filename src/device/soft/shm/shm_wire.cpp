#include "device/soft/shm/shm_wire.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "base/system_random.hpp"
#include "device/soft/shm/copy.hpp"

namespace verbatim::soft::shm {
namespace {

constexpr std::uint32_t largest_mtu = 4096;

void check(const DeviceConfig& config) {
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
      gids_(gids.begin(), gids.end()),
      registry_(config.directory),
      paths_(self_) {
  check(config);
  if (gids.empty()) throw Error(ErrorCode::invalid_argument, "a soft device needs a GID to be found by");
  self_.registry = &registry_;
  self_.id = {system_seed()};
  self_.process = ProcessIdentity::self();
  self_.gid = gids.front();
  self_.ring_bytes = config.ring_bytes;
  instance_mapping_ = registry_.enter(self_.id, gids);
  self_.instance = reinterpret_cast<Instance*>(instance_mapping_.data());
  self_.instance->state.store(static_cast<std::uint32_t>(InstanceState::open), std::memory_order_release);
}

ShmWire::~ShmWire() {
  if (::getpid() != self_.process.pid) {
    paths_.forget();
    return;
  }
  self_.instance->state.store(static_cast<std::uint32_t>(InstanceState::closed), std::memory_order_release);
  registry_.leave(self_.id, gids_);
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
  RingWriter& ring = peer->ring();
  const std::size_t encoded = encoded_bytes(packet.header);
  const std::uint32_t slots = slots_for(encoded + payload_carried(packet.header));
  std::byte* to = ring.reserve(slots);
  if (to == nullptr) [[unlikely]]
    return send_without_room(path, now);
  std::memcpy(to, &packet.header, sizeof packet.header);
  if (encoded != sizeof packet.header) {
    std::memcpy(to + sizeof packet.header, &packet.rdma, encoded - sizeof packet.header);
  }
  if (payload_carried(packet.header) != 0) gather(to + encoded, pieces);
  ring.publish(slots, PayloadForm::in_ring);
  if (ring.attention() != Attention::hot) [[unlikely]]
    peer->ring_doorbell();
  return SendResult::sent;
}

SendResult ShmWire::send_without_room(ShmPath& path, Time now) {
  Peer& peer = *path.peer;
  const bool unread = peer.ring().broken() || peer.ring().attention() == Attention::abandoned;
  if (!unread && (now < path.check_at || peer.alive())) {
    if (now >= path.check_at) path.check_at = now + ShmPath::check_interval;
    return SendResult::full;
  }
  if (!unread) paths_.drop(peer);
  ++counters_.packets_lost;
  return SendResult::sent;
}

const InboundPacket* ShmWire::receive(Time /*now*/) {
  if (holding_ != nullptr) return &inbound_;
  const InboundRings::Found found = inbound_rings_.poll();
  if (found.ring == nullptr) return nullptr;
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
  if (reason == nullptr) {
    const std::size_t payload = header.has(packet_flag::placed) ? header.payload_bytes : available - encoded;
    reason = refuse(header, payload);
  }
  if (reason != nullptr) [[unlikely]] {
    ++counters_.packets_refused;
    inbound_rings_.release(ring, slots);
    return false;
  }
  if (encoded != sizeof header) copy_extension(inbound_.packet, bytes + sizeof header, encoded - sizeof header);
  inbound_.payload = bytes + encoded;
  inbound_.from = ring.from;
  holding_ = &ring;
  holding_slots_ = slots;
  return true;
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

void ShmWire::keep_house(Time /*now*/) {
  inbound_rings_.reap(holding_);
  paths_.drop_dead(nullptr);
}

ShmWire::Counters ShmWire::counters() const {
  Counters counters = counters_;
  counters.rings_abandoned = inbound_rings_.abandoned();
  counters.peers_refused = inbound_rings_.refused();
  return counters;
}

bool ShmWire::place(Path&, const Packet&, std::span<const Piece>) {
  return false;
}
bool ShmWire::fetch(const InboundPacket&, std::uint32_t, std::span<const Piece>) {
  return false;
}
void ShmWire::region_registered(const RegionView&) {}
void ShmWire::region_gone(std::uint32_t) {}
void ShmWire::queue_pair_changed(const QueuePairView&) {}
void ShmWire::queue_pair_gone(Qpn) {}

}  // namespace verbatim::soft::shm
