// UD: datagrams with a 40-byte global route header, out of order and lost as the network likes.
#pragma once

#include "device/soft/engine/engine.hpp"

namespace verbatim::soft::datagram {

void transmit(Engine& engine, QueuePair& queue_pair);
void on_packet(Engine& engine, QueuePair& queue_pair, const InboundPacket& inbound);

}  // namespace verbatim::soft::datagram
