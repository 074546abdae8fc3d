#include "unit/soft_fuzz/packets.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace verbatim::soft::fuzz {
namespace {

std::uint32_t any32(Random& random) {
  static constexpr std::array<std::uint32_t, 6> edges = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  return random.chance(0.5) ? edges[random.below(edges.size())] : static_cast<std::uint32_t>(random.bits());
}

// Most often `origin` itself, else near it, else anywhere.
Psn psn_near(Random& random, Psn origin) {
  if (random.chance(0.65)) return origin;
  if (random.chance(0.8)) return Psn(origin.value() + static_cast<std::uint32_t>(random.below(40)) - 20);
  return Psn(static_cast<std::uint32_t>(random.bits()));
}

PacketKind any_kind(Random& random, Service service) {
  if (service != Service::rc && random.chance(0.95)) {
    return service == Service::uc && random.chance(0.5) ? PacketKind::write : PacketKind::send;
  }
  return static_cast<PacketKind>(random.below(packet_kinds + (random.chance(0.02) ? 4 : 0)));
}

bool is_answer(PacketKind kind) {
  return kind == PacketKind::read_response || kind == PacketKind::atomic_response || kind == PacketKind::acknowledge;
}

std::uint32_t any_key(Random& random, const Keys& keys) {
  if (random.chance(0.7)) return keys.remote;
  const std::array<std::uint32_t, 8> others = {keys.read_only, keys.foreign, keys.gone,     keys.receive,
                                               keys.landing,   keys.source,  any32(random), keys.remote ^ 0x100};
  return others[random.below(others.size())];
}

// In the zone that every remote access may reach, at its edges, in another zone, or nowhere.
std::uint64_t any_address(Random& random, const Arena& arena, std::uint32_t bytes) {
  const Zone zone = remote_zone;
  if (random.chance(0.7)) {
    const std::uint32_t room = bytes < zone.bytes ? zone.bytes - bytes : 1;
    const auto inside = zone.offset + static_cast<std::uint32_t>(random.below(room));
    return arena.address(random.chance(0.5) ? inside & ~7U : inside);
  }
  if (random.chance(0.4)) return arena.address(zone.offset) - 4 + random.below(9);
  if (random.chance(0.5)) return arena.address(zone.offset + zone.bytes) - 4 + random.below(9) - (bytes & 0xffff);
  if (random.chance(0.7)) return arena.address(static_cast<std::uint32_t>(random.below(arena_bytes)));
  return random.chance(0.5) ? random.bits() : UINT64_MAX - random.below(16);
}

std::uint8_t any_flags(Random& random, const QueuePair& queue_pair) {
  std::uint8_t flags = 0;
  const bool continues = queue_pair.responder.assembly != Assembly::none;
  if (random.chance(continues ? 0.1 : 0.9)) flags |= packet_flag::first;
  if (random.chance(0.7)) flags |= packet_flag::last;
  if (random.chance(0.2)) flags |= packet_flag::immediate;
  if (random.chance(0.2)) flags |= packet_flag::solicited;
  if (random.chance(0.3)) flags |= packet_flag::ack_request;
  if (random.chance(0.1)) flags |= packet_flag::placed;
  if (random.chance(0.05)) flags |= packet_flag::checksummed;
  if (random.chance(0.02)) flags |= 0x80;
  return flags;
}

// A payload that fits the packet count, mostly.
std::uint32_t any_payload(Random& random, const PacketHeader& header, std::uint32_t mtu) {
  if (random.chance(0.05)) return any32(random);
  if (random.chance(0.02)) return 0xffffffff - static_cast<std::uint32_t>(random.below(64));
  const std::uint32_t most = header.packet_count * mtu;
  if (!header.has(packet_flag::last)) return most;
  return most - static_cast<std::uint32_t>(random.below(mtu + (random.chance(0.1) ? 2 : 0)));
}

std::uint16_t any_packet_count(Random& random) {
  if (random.chance(0.7)) return 1;
  if (random.chance(0.8)) return static_cast<std::uint16_t>(1 + random.below(8));
  return static_cast<std::uint16_t>(random.bits());
}

void fill_extension(Random& random, Inhabitants& device, const QueuePair& queue_pair, Packet& packet) {
  const PacketHeader& header = packet.header;
  if (header.kind == PacketKind::compare_swap || header.kind == PacketKind::fetch_add) {
    packet.atomic = {any_address(random, device.arena, 8), any_key(random, device.keys), 0, random.bits(),
                     random.bits()};
  } else if (header.kind == PacketKind::atomic_response) {
    packet.result.original = random.bits();
  } else if (header.service() == Service::ud) {
    packet.datagram = {};
    packet.datagram.qkey = random.chance(0.95) ? queue_pair.attributes.qkey : any32(random);
    packet.datagram.flow_label = any32(random);
  } else {
    std::uint32_t length = header.payload_bytes;
    if (header.kind == PacketKind::read_request) length = static_cast<std::uint32_t>(random.below(6000));
    if (!header.has(packet_flag::last))
      length += static_cast<std::uint32_t>(random.below(4 * queue_pair.mtu_bytes + 1));
    if (random.chance(0.05)) length = any32(random);
    packet.rdma = {any_address(random, device.arena, length), any_key(random, device.keys), length};
  }
}

// The request that waits for an answer, if there is one.
const SendRequest* oldest_outstanding(QueuePair& queue_pair) {
  const std::uint32_t head = queue_pair.sends.head();
  return head == queue_pair.requester.first_unsent ? nullptr : &queue_pair.sends.at(head);
}

// What the queue pair awaits of its peer.
Psn awaited(Random& random, QueuePair& queue_pair, PacketKind kind) {
  if (!is_answer(kind)) return psn_near(random, queue_pair.responder.expected);
  const Requester& requester = queue_pair.requester;
  const SendRequest* oldest = oldest_outstanding(queue_pair);
  if (oldest == nullptr) return psn_near(random, requester.next_psn);
  return psn_near(random, random.chance(0.7) ? oldest->first_psn.plus(oldest->received) : requester.highest.previous());
}

// The answer that an honest peer would give; what is made up around it makes it wrong often enough.
void answer(Packet& packet, const SendRequest& request, std::uint32_t mtu) {
  PacketHeader& header = packet.header;
  header.flags = packet_flag::first | packet_flag::last;
  header.packet_count = 1;
  header.sequence = request.first_psn.plus(request.packets - 1).value();
  if (request.opcode == IBV_WR_RDMA_READ) {
    header.kind = PacketKind::read_response;
    header.sequence = request.first_psn.plus(request.received).value();
    header.payload_bytes = std::min(mtu, request.length - request.received * mtu);
  } else if (is_read_or_atomic(request)) {
    header.kind = PacketKind::atomic_response;
  } else {
    header.kind = PacketKind::acknowledge;
    header.immediate = syndrome::ack;
  }
}

std::uint32_t any_syndrome(Random& random) {
  if (random.chance(0.6)) return syndrome::ack;
  if (random.chance(0.5)) return syndrome::rnr_nak | static_cast<std::uint32_t>(random.below(32));
  return random.chance(0.5) ? std::uint32_t{syndrome::nak_sequence} : any32(random);
}

}  // namespace

Packet make_packet(Random& random, Inhabitants& device) {
  QueuePair& queue_pair = *device.queue_pairs[random.below(device.queue_pairs.size())];
  Packet packet;
  std::memset(&packet, static_cast<int>(random.below(256)), sizeof packet);
  PacketHeader& header = packet.header;
  const Service service =
      random.chance(0.98) ? queue_pair.service() : static_cast<Service>(random.below(random.chance(0.1) ? 256 : 3));
  header.kind = any_kind(random, service);
  header.flags = any_flags(random, queue_pair);
  header.pkey = random.chance(0.98) ? 0xffff : static_cast<std::uint16_t>(random.bits());
  header.packet_count = any_packet_count(random);
  header.destination_qpn = random.chance(0.98) ? queue_pair.qpn.value : any32(random);
  const std::uint32_t from = random.chance(0.98) ? Inhabitants::peer_qpn : any32(random) & Qpn::mask;
  header.source = static_cast<std::uint32_t>(service) << 24 | from;
  header.sequence = awaited(random, queue_pair, header.kind).value() | any32(random) << 24;
  header.acknowledgement = 0;
  if (random.chance(0.2)) {
    header.acknowledgement =
        PacketHeader::acknowledgement_valid | awaited(random, queue_pair, PacketKind::acknowledge).value();
  }
  const bool carries =
      header.kind == PacketKind::send || header.kind == PacketKind::write || header.kind == PacketKind::read_response;
  const std::uint32_t mtu = queue_pair.mtu_bytes == 0 ? 4096 : queue_pair.mtu_bytes;
  header.payload_bytes = carries || random.chance(0.02) ? any_payload(random, header, mtu) : 0;
  if (header.has(packet_flag::placed) && random.chance(0.7)) header.payload_bytes = 0;
  header.immediate = header.kind == PacketKind::acknowledge ? any_syndrome(random) : any32(random);
  const SendRequest* waiting = oldest_outstanding(queue_pair);
  if (service == Service::rc && waiting != nullptr && random.chance(0.3)) answer(packet, *waiting, mtu);
  fill_extension(random, device, queue_pair, packet);
  return packet;
}

}  // namespace verbatim::soft::fuzz
