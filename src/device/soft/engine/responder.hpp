// The answering half of reliable and unreliable connections: checks requests, executes them in order, owes answers.
#pragma once

#include "device/soft/engine/engine.hpp"

namespace verbatim::soft::responder {

void on_request(Engine& engine, QueuePair& queue_pair, const InboundPacket& inbound);

// Sends what is owed: responses in order, then a NAK or ACK. False if the wire had no room for all of it.
bool send_owed(Engine& engine, QueuePair& queue_pair);

// An ACK that no response or NAK has to go before, and that a packet of ours could carry: taken if there is one.
[[nodiscard]] bool take_acknowledgement(QueuePair& queue_pair, Psn& psn);

}  // namespace verbatim::soft::responder
