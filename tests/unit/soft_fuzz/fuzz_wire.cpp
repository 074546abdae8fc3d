#include "unit/soft_fuzz/fuzz_wire.hpp"

#include <fmt/format.h>

#include <cstring>

#include "device/soft/engine/checksum.hpp"
#include "device/soft/engine/pieces.hpp"

namespace verbatim::soft::fuzz {
namespace {

constexpr std::size_t most_carried = 1536;  // as a ring has a largest packet
constexpr double full_rate = 0.05;
constexpr double withdrawn_rate = 0.03;

std::uint64_t total(std::span<const Piece> pieces) {
  std::uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.length;
  return bytes;
}

}  // namespace

bool FuzzWire::inject(const Packet& packet, bool by_reference) {
  // A placed write's payload is where it belongs already: wires carry none and check none.
  const bool carried = !by_reference && !packet.header.has(packet_flag::placed);
  const std::size_t available = carried ? most_carried : UINT32_MAX;
  if (refuse(packet.header, available) != nullptr) return false;
  Arrival arrival{{.packet = packet, .payload = nullptr, .from = &path_}, {}};
  if (!by_reference) {
    arrival.payload.assign(most_carried, static_cast<std::byte>(random_.bits()));
    if (packet.header.has(packet_flag::checksummed) && packet.header.payload_bytes >= checksum_bytes &&
        packet.header.payload_bytes <= most_carried && random_.chance(0.8)) {
      store_checksum(packet, std::span(arrival.payload).first(packet.header.payload_bytes));
    }
  }
  arrivals_.push_back(std::move(arrival));
  Arrival& last = arrivals_.back();
  if (!by_reference) last.inbound.payload = last.payload.data();
  return true;
}

SendResult FuzzWire::send(Path&, const Packet& packet, std::span<const Piece> pieces, Qpn, Time) {
  if (total(pieces) != packet.header.payload_bytes) complain("pieces of a sent packet are not its payload");
  if (!loops_back_) return random_.chance(full_rate) ? SendResult::full : SendResult::sent;
  arrivals_.push_back({{.packet = packet, .payload = nullptr, .from = &path_}, {}});
  Arrival& last = arrivals_.back();
  last.payload.resize(packet.header.payload_bytes + 1);
  gather(pieces, last.payload.data());
  last.inbound.payload = last.payload.data();
  return SendResult::sent;
}

bool FuzzWire::fetch(const InboundPacket& inbound, std::uint32_t offset, std::span<const Piece> pieces) {
  const std::uint32_t payload = inbound.packet.header.payload_bytes;
  if (offset > payload || total(pieces) > payload - offset) {
    complain(fmt::format("fetches [{}, +{}) of a payload of {}", offset, total(pieces), payload));
    return false;
  }
  if (inbound.payload != nullptr && payload > arrivals_.front().payload.size()) {
    complain(fmt::format("fetches from {} bytes that the wire never carried, by a packet of kind {}", payload,
                         static_cast<int>(inbound.packet.header.kind)));
    return false;
  }
  // The engine's own scratch memory for checksummed packets is no piece of a region.
  const bool scratch = pieces.size() == 1 && pieces.front().lkey == LKey{};
  for (const Piece& piece : pieces) {
    const bool granted = arena_.writable(piece.address, piece.length) && !withdrawn.contains(piece.lkey.value);
    if (scratch || piece.length == 0 || granted) continue;
    complain(fmt::format("has {} bytes written where nothing is granted, by a packet of kind {}", piece.length,
                         static_cast<int>(inbound.packet.header.kind)));
    return false;
  }
  if (!loops_back_ && random_.chance(withdrawn_rate)) return false;
  if (inbound.payload != nullptr) {
    scatter(pieces, inbound.payload + offset);
  } else {
    for (const Piece& piece : pieces) std::memset(piece.address, static_cast<int>(random_.below(256)), piece.length);
  }
  return true;
}

}  // namespace verbatim::soft::fuzz
