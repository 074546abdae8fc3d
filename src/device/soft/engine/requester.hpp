// The requesting half of reliable and unreliable connections: sends what is posted, takes the answers, sends again.
#pragma once

#include "device/soft/engine/engine.hpp"

namespace verbatim::soft::requester {

// Sends as much of the send queue as state, window and wire allow.
void transmit(Engine& engine, QueuePair& queue_pair);

// An ACK or NAK; also the acknowledgement that rides on another packet.
void on_acknowledge(Engine& engine, QueuePair& queue_pair, const PacketHeader& header);
void on_piggybacked(Engine& engine, QueuePair& queue_pair, Psn psn);
void on_read_response(Engine& engine, QueuePair& queue_pair, const InboundPacket& inbound);
void on_atomic_response(Engine& engine, QueuePair& queue_pair, const Packet& packet);

// The ack timeout or the RNR timer ran out.
void on_timer(Engine& engine, QueuePair& queue_pair);

// Once the send queue has nothing on the way: tells a queue pair in SQD that it is drained.
void tell_if_drained(Engine& engine, QueuePair& queue_pair);

}  // namespace verbatim::soft::requester
