#include "device/soft/engine/faulty_wire.hpp"

#include <algorithm>
#include <utility>

#include "device/soft/engine/checksum.hpp"
#include "device/soft/engine/pieces.hpp"

namespace verbatim::soft {
namespace {

bool belongs(PacketClass wanted, PacketKind kind) {
  switch (wanted) {
    case PacketClass::any:
      return true;
    case PacketClass::acknowledge:
      return kind == PacketKind::acknowledge;
    case PacketClass::response:
      return kind == PacketKind::read_response || kind == PacketKind::atomic_response;
    case PacketClass::request:
      return kind != PacketKind::acknowledge && kind != PacketKind::read_response &&
             kind != PacketKind::atomic_response;
  }
  return false;
}

}  // namespace

FaultyWire::FaultyWire(Wire& inner, const std::vector<PacketRule>& rules, const Clock& clock, std::uint64_t seed)
    : inner_(inner), clock_(clock), random_(seed) {
  for (const PacketRule& rule : rules) rules_.push_back({rule});
}

bool FaultyWire::strikes(Rule& rule, const Packet& packet, Qpn source) {
  if (rule.rule.qpn != 0 && rule.rule.qpn != source.value) return false;
  if (!belongs(rule.rule.packets, packet.header.kind) || rule.strikes >= rule.rule.limit) return false;
  ++rule.matches;
  const bool struck = rule.rule.nth != 0 ? rule.matches == rule.rule.nth : random_.chance(rule.rule.rate);
  if (struck) ++rule.strikes;
  return struck;
}

SendResult FaultyWire::send(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time now) {
  release_due(clock_.now());
  // A packet suffers one fault at most, the first rule's that strikes.
  for (Rule& rule : rules_) {
    if (!strikes(rule, packet, source)) continue;
    switch (rule.rule.fault) {
      case PacketFault::drop:
        return SendResult::sent;
      case PacketFault::duplicate:
        hold(path, packet, pieces, source, clock_.now() + rule.rule.delay);
        break;
      case PacketFault::reorder:
      case PacketFault::delay:
        hold(path, packet, pieces, source, clock_.now() + rule.rule.delay);
        return SendResult::sent;
      case PacketFault::corrupt:
        return send_damaged(path, packet, pieces, source, now);
    }
    break;
  }
  return inner_.send(path, packet, pieces, source, now);
}

void FaultyWire::hold(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time until) {
  if (held_.size() >= max_held) return;
  std::vector<std::byte> payload(packet.header.payload_bytes);
  gather(pieces, payload.data());
  held_.push_back({until, &path, packet, std::move(payload), source});
}

// Carries a checksum and then one flipped bit, somewhere the receiver would not notice without it.
SendResult FaultyWire::send_damaged(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source,
                                    Time now) {
  std::vector<std::byte> payload(packet.header.payload_bytes + checksum_bytes);
  gather(pieces, payload.data());
  Packet damaged = packet;
  damaged.header.flags |= packet_flag::checksummed;
  damaged.header.payload_bytes += checksum_bytes;
  store_checksum(damaged, payload);
  payload[random_.below(payload.size())] ^= static_cast<std::byte>(1U << random_.below(8));
  const Piece piece{payload.data(), static_cast<std::uint32_t>(payload.size()), LKey{}};
  return inner_.send(path, damaged, {&piece, 1}, source, now);
}

void FaultyWire::release_due(Time now) {
  const auto due =
      std::stable_partition(held_.begin(), held_.end(), [&](const Held& held) { return held.release > now; });
  for (auto held = due; held != held_.end(); ++held) {
    const Piece piece{held->payload.data(), static_cast<std::uint32_t>(held->payload.size()), LKey{}};
    (void)inner_.send(*held->path, held->packet, {&piece, held->payload.empty() ? 0U : 1U}, held->source, now);
  }
  held_.erase(due, held_.end());
}

const InboundPacket* FaultyWire::receive(Time now) {
  if (!held_.empty()) release_due(clock_.now());
  return inner_.receive(now);
}

Time FaultyWire::next_release() const {
  Time next = never;
  for (const Held& held : held_) next = std::min(next, held.release);
  return next;
}

}  // namespace verbatim::soft
