// The answering half of reliable and unreliable connections: checks requests, executes them in order, owes answers.
#pragma once

#include "device/soft/engine/engine.hpp"

namespace verbatim::soft::responder {

void on_request(Engine& engine, QueuePair& queue_pair, const InboundPacket& inbound);

}  // namespace verbatim::soft::responder
