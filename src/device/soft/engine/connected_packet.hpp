// What every packet of a connection has in common, except what Engine::transmit() fills in.
#pragma once

#include "device/soft/engine/queue_pair.hpp"

namespace verbatim::soft {

// No flags, no payload, the kind's extension not set.
[[nodiscard]] inline Packet connected_packet(const QueuePair& queue_pair, PacketKind kind, Psn psn,
                                             std::uint32_t count) {
  Packet packet;
  packet.header.kind = kind;
  packet.header.flags = 0;
  packet.header.packet_count = static_cast<std::uint16_t>(count);
  packet.header.destination_qpn = queue_pair.attributes.dest_qp_num;
  packet.header.source = source_of(queue_pair);
  packet.header.sequence = psn.value();
  packet.header.acknowledgement = 0;
  packet.header.payload_bytes = 0;
  packet.header.immediate = 0;
  return packet;
}

}  // namespace verbatim::soft
