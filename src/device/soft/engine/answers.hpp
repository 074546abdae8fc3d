// What the answering half of a connection owes the requester, and when it is said: answers to READs and atomics in the
// order of their requests, then a NAK, or one ACK for everything before.
#pragma once

#include "device/soft/engine/engine.hpp"

namespace verbatim::soft::answers {

// The request that is next in order is refused with this syndrome.
void owe_nak(Engine& engine, QueuePair& queue_pair, std::uint8_t code);

// A request was executed. It is acknowledged at once if the requester waits to hear, else together with what comes
// next.
void owe_acknowledgement(Engine& engine, QueuePair& queue_pair, const PacketHeader& request);

// READs and atomics may be owed an answer up to the number that both ends agreed on, and as many again repeated ones.
// They are counted apart: a repeated one may still wait for room when its requester has the first answer and goes on.
[[nodiscard]] bool has_room(QueuePair& queue_pair, bool is_repeated);
// Only if has_room().
void owe_response(Engine& engine, QueuePair& queue_pair, const Response& response);

[[nodiscard]] inline bool owes(const QueuePair& queue_pair) {
  const Responder& self = queue_pair.responder;
  return self.acknowledge_owed || self.nak_owed != 0 || self.response_count > 0;
}
// Says what is owed. False if the wire had no room for all of it.
[[nodiscard]] bool send_owed(Engine& engine, QueuePair& queue_pair);

// An ACK that no response or NAK has to go before, and that a packet of ours could carry: taken if there is one.
[[nodiscard]] bool take_acknowledgement(QueuePair& queue_pair, Psn& psn);

}  // namespace verbatim::soft::answers
