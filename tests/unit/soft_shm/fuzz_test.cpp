// A peer that writes garbage: into its ring, its tables, its slot. It may get nothing through; it may not crash us,
// hold us up, or make us write or read outside of what was granted.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "unit/soft_shm/support.hpp"

namespace verbatim::soft::shm {
namespace {

constexpr std::uint64_t seed = 20240607;
constexpr int rounds = 120'000;

// A device without manners, on the same files as a real one.
class Attacker {
 public:
  Attacker(const TemporaryDirectory& directory, const ibv_gid& victim) : registry_(directory.path()), victim_(victim) {
    self_.registry = &registry_;
    self_.id = {77};
    self_.process = ProcessIdentity::self();
    self_.gid = gid(9);
    self_.ring_bytes = min_ring_bytes;
    mapping_ = registry_.enter(self_.id, std::span(&self_.gid, 1));
    self_.instance = reinterpret_cast<Instance*>(mapping_.data());
    self_.instance->state = static_cast<std::uint32_t>(InstanceState::open);
    reconnect();
  }
  void reconnect() {
    peer_.reset();
    peer_ = std::make_unique<Peer>(self_, std::move(*registry_.find(victim_)));
  }
  [[nodiscard]] Peer& peer() { return *peer_; }
  [[nodiscard]] Instance& tables() { return *self_.instance; }

 private:
  Registry registry_;
  ibv_gid victim_;
  Self self_;
  Mapping mapping_;
  std::unique_ptr<Peer> peer_;
};

void scribble(Random& random, void* to, std::size_t bytes) {
  auto* at = static_cast<std::uint8_t*>(to);
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(random.bits());
}

// Something that is nearly a packet, so that the checks behind the first ones are reached too.
void nearly_a_packet(Random& random, std::byte* to, std::uint32_t slots) {
  const std::size_t room = slots * slot_bytes - ready_word_bytes;
  if (random.chance(0.3)) return scribble(random, to, room);
  Packet packet = write_packet(nullptr, 0x101, 0);
  scribble(random, &packet.rdma, sizeof(RdmaHeader));
  packet.header.kind = static_cast<PacketKind>(random.below(packet_kinds + 1));
  packet.header.flags = static_cast<std::uint8_t>(random.bits());
  packet.header.source = static_cast<std::uint32_t>(random.below(4)) << 24 | 0x11;
  packet.header.payload_bytes = static_cast<std::uint32_t>(random.chance(0.5) ? random.below(room) : random.bits());
  Reference reference{};
  reference.generation = 1;
  reference.pieces = static_cast<std::uint32_t>(random.below(max_reference_pieces + 2));
  for (ReferencePiece& each : reference.piece) {
    each = {.address = random.chance(0.5) ? random.below(100'000) : random.bits(),
            .length = static_cast<std::uint32_t>(random.below(packet.header.payload_bytes / 2 + 2)),
            .key = static_cast<std::uint32_t>(random.below(4) << 8 | 1)};
  }
  if (random.chance(0.5)) {
    packet.header.payload_bytes = 0;
    for (std::uint32_t i = 0; i < std::min(reference.pieces, max_reference_pieces); ++i) {
      packet.header.payload_bytes += reference.piece[i].length;
    }
  }
  std::memcpy(to, &packet, std::min(sizeof packet, room));
  if (room <= sizeof packet) return;
  const std::size_t offset = encoded_bytes(packet.header);
  if (offset < room) std::memcpy(to + offset, &reference, std::min(sizeof reference, room - offset));
}

void scribble_tables(Random& random, Instance& tables) {
  const auto index = static_cast<std::uint32_t>(random.below(4));
  RegionEntry& entry = tables.regions[index];
  entry.key = index << 8 | 1;
  entry.address = random.chance(0.5) ? 0 : random.bits();
  entry.length = random.bits();
  entry.segment = static_cast<std::uint32_t>(random.chance(0.5) ? random.below(max_segments + 2) : random.bits());
  entry.segment_serial = static_cast<std::uint32_t>(random.below(3));
  entry.segment_offset = random.bits();
  entry.sequence = static_cast<std::uint32_t>(random.below(4));
  QueuePairEntry& queue_pair = tables.queue_pairs[0x11];
  queue_pair.qpn = QueuePairEntry::occupied | 0x11;
  queue_pair.generation = 1;
  queue_pair.sequence = static_cast<std::uint32_t>(random.below(3));
}

TEST(Fuzz, NothingThatAPeerWritesIntoItsRingHurts) {
  const TemporaryDirectory directory;
  const auto wire = open_wire(config_in(directory, min_ring_bytes), gid(1));
  Attacker attacker(directory, gid(1));
  Random random(seed);
  std::uint64_t taken = 0;
  std::uint64_t fetched = 0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", round " << round);
    RingWriter& ring = attacker.peer().ring();
    const auto slots = static_cast<std::uint32_t>(1 + random.below(random.chance(0.1) ? 100 : 12));
    std::byte* to = ring.reserve(slots);
    if (to == nullptr || ring.attention() == Attention::abandoned) {
      attacker.reconnect();
      keep_house(*wire);
      continue;
    }
    nearly_a_packet(random, to, slots);
    if (random.chance(0.2)) scribble_tables(random, attacker.tables());
    ring.publish(slots, random.chance(0.5) ? PayloadForm::in_ring : PayloadForm::by_reference);
    if (random.chance(0.02)) scribble(random, to - ready_word_bytes, ready_word_bytes);
    if (random.chance(0.01)) attacker.peer().slot().placement = random.bits();
    for (int look = 0; look < 4; ++look) {
      const InboundPacket* inbound = wire->receive(now());
      if (inbound == nullptr) continue;
      ++taken;
      std::vector<std::byte> got(std::min<std::uint32_t>(inbound->packet.header.payload_bytes, 1U << 16));
      const Piece into = piece(got.data(), got.size());
      const bool placed = inbound->packet.header.has(packet_flag::placed);
      if (!placed && wire->fetch(*inbound, 0, std::span(&into, 1))) ++fetched;
      wire->release();
    }
  }
  const ShmWire::Counters counters = wire->counters();
  EXPECT_GT(taken, rounds / 100) << "the checks behind the first were never reached";
  EXPECT_GT(fetched, 0u);
  EXPECT_GT(counters.packets_refused, rounds / 100);
  EXPECT_GT(counters.rings_abandoned, 10u);
  EXPECT_GT(counters.fetches_failed, 10u);
}

// Garbage that was there before the ring was announced, and control words that change while it is used.
TEST(Fuzz, NothingThatAPeerAnnouncesHurts) {
  const TemporaryDirectory directory;
  const auto wire = open_wire(config_in(directory, min_ring_bytes), gid(1));
  Attacker attacker(directory, gid(1));
  Random random(seed);
  const Mapping mapping = *Registry(directory.path()).find(gid(1));
  auto& victim = *reinterpret_cast<Instance*>(mapping.data());
  const Directory files(directory.path());
  for (int round = 0; round < 3000; ++round) {
    const auto slot = static_cast<std::uint32_t>(1 + random.below(20));
    const InstanceId sender{1000 + random.below(5)};
    files.remove(ring_name(sender, wire->id()));
    const std::size_t size = random.chance(0.5) ? ring_control_bytes + min_ring_bytes : random.below(100'000) + 1;
    const FileDescriptor file = files.create(ring_name(sender, wire->id()), size);
    std::vector<std::byte> content(std::min<std::size_t>(size, 400));
    scribble(random, content.data(), content.size());
    if (random.chance(0.7)) {
      RingControl control{};
      control.magic = ring_magic;
      control.version = layout_version;
      control.sender = sender.value;
      control.receiver = wire->id().value;
      control.sender_pid = static_cast<std::int32_t>(random.chance(0.5) ? ::getpid() : random.bits());
      control.probe_address = random.bits();
      std::memcpy(content.data(), static_cast<void*>(&control), std::min(content.size(), sizeof control));
    }
    ASSERT_EQ(::pwrite(file.number(), content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
    victim.slots[slot].sender = sender.value;
    victim.slots[slot].claim = random.chance(0.8) ? SlotClaim::make(::getpid(), SlotState::announced) : random.bits();
    victim.slots_limit = static_cast<std::uint32_t>(random.chance(0.9) ? 21 : random.bits());
    victim.doorbell[0].fetch_or(1ULL << slot);
    victim.doorbell_summary = random.chance(0.9) ? 1 : random.bits();
    if (random.chance(0.2)) victim.doorbell[random.below(doorbell_words)] = random.bits();
    static_cast<void>(wire->receive(now()));
    wire->release();
    if (random.chance(0.3)) keep_house(*wire);
  }
  EXPECT_GT(wire->counters().peers_refused, 50u);
}

}  // namespace
}  // namespace verbatim::soft::shm
