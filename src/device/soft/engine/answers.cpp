#include "device/soft/engine/answers.hpp"

#include <algorithm>

#include "device/soft/engine/connected_packet.hpp"

namespace verbatim::soft::answers {
namespace {

Packet answer_of(const QueuePair& qp, PacketKind kind, Psn psn, std::uint32_t count) {
  Packet packet = connected_packet(qp, kind, psn, count);
  packet.header.immediate = syndrome::ack;
  return packet;
}

Response& response_at(Responder& self, std::uint32_t number) {
  return self.responses[(self.first_response + number) % self.responses.size()];
}

enum class Sent { all, part, wire_full };

Sent send_response(Engine& engine, QueuePair& qp, Response& response) {
  if (response.is_atomic) {
    Packet packet = answer_of(qp, PacketKind::atomic_response, response.psn, 1);
    packet.result.original = response.original;
    return engine.transmit(qp, qp.address, packet, {}) ? Sent::all : Sent::wire_full;
  }
  const std::uint32_t count = std::min({response.packets, engine.train_limit(), 0xffffU});
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(response.remaining, std::uint64_t{count} * qp.mtu_bytes));
  const Piece source{reinterpret_cast<std::byte*>(response.address), bytes, LKey{response.rkey.value}};
  Packet packet = answer_of(qp, PacketKind::read_response, response.psn.plus(response.sent), count);
  packet.header.payload_bytes = bytes;
  if (response.sent == 0) packet.header.flags |= packet_flag::first;
  if (count == response.packets) packet.header.flags |= packet_flag::last;
  if (!engine.transmit(qp, qp.address, packet, {&source, bytes > 0 ? 1U : 0U})) return Sent::wire_full;
  response.sent += count;
  response.packets -= count;
  response.address += bytes;
  response.remaining -= bytes;
  return response.packets == 0 ? Sent::all : Sent::part;
}

// The region may have gone while the answer waited.
bool still_readable(const Engine& engine, const QueuePair& qp, const Response& response) {
  return response.is_atomic || response.remaining == 0 ||
         engine.regions.allows_remote(response.rkey, response.address, response.remaining, qp.settings.domain,
                                      IBV_ACCESS_REMOTE_READ);
}

bool send_responses(Engine& engine, QueuePair& qp) {
  Responder& self = qp.responder;
  while (self.response_count > 0) {
    Response& response = response_at(self, 0);
    if (!still_readable(engine, qp, response)) {
      self.response_count = 0;
      self.nak_owed = syndrome::nak_remote_access;
      self.nak_psn = response.psn.plus(response.sent);
      engine.tell(qp, IBV_EVENT_QP_ACCESS_ERR);
      engine.enter_error(qp);
      return true;
    }
    const Sent sent = send_response(engine, qp, response);
    if (sent == Sent::wire_full) return false;
    if (sent == Sent::part) continue;
    self.first_response = (self.first_response + 1) % static_cast<std::uint32_t>(self.responses.size());
    --self.response_count;
  }
  return true;
}

}  // namespace

void owe_nak(Engine& engine, QueuePair& qp, std::uint8_t code) {
  qp.responder.nak_owed = code;
  qp.responder.nak_psn = qp.responder.expected;
  qp.responder.acknowledge_owed = false;
  if (!send_owed(engine, qp)) engine.owe(qp);
}

void owe_acknowledgement(Engine& engine, QueuePair& qp, const PacketHeader& header) {
  if (!qp.reliable() || !header.has(packet_flag::last)) return;
  qp.responder.acknowledge_owed = true;
  if (header.has(packet_flag::ack_request)) {
    engine.owe_at_once(qp);
  } else {
    engine.owe(qp);
  }
}

bool has_room(QueuePair& qp, bool is_repeated) {
  Responder& self = qp.responder;
  std::uint32_t alike = 0;
  for (std::uint32_t i = 0; i < self.response_count; ++i) {
    if (response_at(self, i).is_repeated == is_repeated) ++alike;
  }
  return alike < (is_repeated ? self.responses.size() / 2 : qp.attributes.max_dest_rd_atomic);
}

void owe_response(Engine& engine, QueuePair& qp, const Response& response) {
  response_at(qp.responder, qp.responder.response_count++) = response;
  if (!send_owed(engine, qp)) engine.owe(qp);
}

bool send_owed(Engine& engine, QueuePair& qp) {
  Responder& self = qp.responder;
  if (!send_responses(engine, qp)) return false;
  if (self.nak_owed != 0) {
    Packet packet = answer_of(qp, PacketKind::acknowledge, self.nak_psn, 1);
    packet.header.immediate = self.nak_owed;
    if (!engine.transmit(qp, qp.address, packet, {})) return false;
    self.nak_owed = 0;
  }
  if (self.acknowledge_owed) {
    Packet packet = answer_of(qp, PacketKind::acknowledge, self.expected.previous(), 1);
    if (!engine.transmit(qp, qp.address, packet, {})) return false;
    self.acknowledge_owed = false;
  }
  return true;
}

bool take_acknowledgement(QueuePair& qp, Psn& psn) {
  Responder& self = qp.responder;
  if (!self.acknowledge_owed || self.response_count > 0 || self.nak_owed != 0) return false;
  self.acknowledge_owed = false;
  psn = self.expected.previous();
  return true;
}

}  // namespace verbatim::soft::answers
