#include "device/soft/engine/responder.hpp"

#include <algorithm>
#include <atomic>

#include "device/soft/engine/answers.hpp"
#include "device/soft/engine/pieces.hpp"

namespace verbatim::soft::responder {
namespace {

// What became of a request packet that was next in order.
enum class Outcome {
  executed,  // expected PSN moved on
  deferred,  // nothing happened: it must be sent again
  refused,   // NAKed or dropped for good; the queue pair may be in ERR
};

// A request that can't be executed. Reliable: the requester is told and both queue pairs end in ERR. Unreliable: the
// message is dropped (specification, volume 1, 9.8.3).
Outcome refuse_request(Engine& engine, QueuePair& qp, std::uint8_t code) {
  if (code == syndrome::nak_remote_access) ++engine.counters.bad_keys;
  if (!qp.reliable()) return Outcome::refused;
  answers::owe_nak(engine, qp, code);
  if (code == syndrome::nak_remote_access) engine.tell(qp, IBV_EVENT_QP_ACCESS_ERR);
  if (code == syndrome::nak_invalid_request) engine.tell(qp, IBV_EVENT_QP_REQ_ERR);
  engine.enter_error(qp);
  return Outcome::refused;
}

// A receive that can't take the message. It completes with the error, and the requester is told what that means for it.
// An unreliable message that is too long is dropped and the receive waits for another.
Outcome fail_receive(Engine& engine, QueuePair& qp, ibv_wc_status status, std::uint8_t code) {
  if (!qp.reliable() && status == IBV_WC_LOC_LEN_ERR) {
    ++engine.counters.dropped;
    return Outcome::refused;
  }
  if (qp.reliable()) answers::owe_nak(engine, qp, code);
  qp.responder.receive_taken = false;
  engine.complete_receive(qp, qp.responder.receive, {.status = status}, true);
  engine.enter_error(qp);
  return Outcome::refused;
}

Outcome no_receive(Engine& engine, QueuePair& qp) {
  if (!qp.reliable()) {
    ++engine.counters.dropped;
    return Outcome::refused;
  }
  ++engine.counters.rnr_nak_sent;
  qp.responder.gap_told = true;  // what follows the refused packet is dropped without a word
  answers::owe_nak(engine, qp, static_cast<std::uint8_t>(syndrome::rnr_nak | qp.attributes.min_rnr_timer));
  return Outcome::deferred;
}

bool have_receive(Engine& engine, QueuePair& qp) {
  Responder& self = qp.responder;
  if (!self.receive_taken) self.receive_taken = engine.take_receive(qp, self.receive);
  return self.receive_taken;
}

void advance(QueuePair& qp, std::uint32_t packets) {
  qp.responder.expected = qp.responder.expected.plus(packets);
  qp.responder.gap_told = false;
}

// A packet that is not the message's last carries whole MTUs, the last what remains.
bool has_legal_size(const QueuePair& qp, const PacketHeader& header, std::uint32_t bytes) {
  const std::uint64_t most = std::uint64_t{header.packet_count} * qp.mtu_bytes;
  if (!header.has(packet_flag::last)) return bytes == most;
  if (bytes == 0) return header.packet_count == 1 && header.has(packet_flag::first);
  return bytes <= most && bytes > most - qp.mtu_bytes;
}

void deliver(Engine& engine, QueuePair& qp, const PacketHeader& header, ibv_wc_opcode opcode, std::uint32_t bytes) {
  qp.responder.receive_taken = false;
  Received received{.opcode = opcode, .bytes = bytes};
  if (header.has(packet_flag::immediate)) {
    received.flags = IBV_WC_WITH_IMM;
    received.immediate = header.immediate;
  }
  engine.complete_receive(qp, qp.responder.receive, received, header.has(packet_flag::solicited));
}

// `skip`: packets at the front that arrived before (a train sent again may begin with some).
Outcome execute_send(Engine& engine, QueuePair& qp, const InboundPacket& inbound, std::uint32_t skip) {
  Responder& self = qp.responder;
  const PacketHeader& header = inbound.packet.header;
  const bool first = header.has(packet_flag::first) && skip == 0;
  if (first != (self.assembly == Assembly::none) || (!first && self.assembly != Assembly::send)) {
    return refuse_request(engine, qp, syndrome::nak_invalid_request);
  }
  if (!has_legal_size(qp, header, header.payload_bytes))
    return refuse_request(engine, qp, syndrome::nak_invalid_request);
  if (!have_receive(engine, qp)) return no_receive(engine, qp);
  const std::uint32_t skipped = skip * qp.mtu_bytes;
  const std::uint32_t bytes = header.payload_bytes - skipped;
  if (first) self.offset = 0;
  if (bytes > self.receive.length - self.offset) {
    return fail_receive(engine, qp, IBV_WC_LOC_LEN_ERR, syndrome::nak_invalid_request);
  }
  if (bytes > 0) {
    const PieceRange target(self.receive.pieces, self.offset, bytes);
    if (!allowed(engine.regions, target.pieces(), qp.settings.domain, true)) {
      return fail_receive(engine, qp, IBV_WC_LOC_PROT_ERR, syndrome::nak_remote_operational);
    }
    if (!engine.wire().fetch(inbound, skipped, target.pieces())) {
      ++engine.counters.dropped;
      return Outcome::deferred;
    }
  }
  self.assembly = Assembly::send;
  self.offset += bytes;
  advance(qp, header.packet_count - skip);
  answers::owe_acknowledgement(engine, qp, header);
  if (header.has(packet_flag::last)) {
    self.assembly = Assembly::none;
    deliver(engine, qp, header, IBV_WC_RECV, self.offset);
  }
  return Outcome::executed;
}

bool may_write(const Engine& engine, const QueuePair& qp, std::uint32_t rkey, std::uint64_t address,
               std::uint32_t bytes) {
  if (bytes == 0) return true;  // touches nothing, so no key is asked (specification, volume 1, 9.7.4.1.3)
  return (qp.attributes.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0 &&
         engine.regions.allows_remote(RKey{rkey}, address, bytes, qp.settings.domain, IBV_ACCESS_REMOTE_WRITE);
}

Outcome execute_write(Engine& engine, QueuePair& qp, const InboundPacket& inbound, std::uint32_t skip) {
  Responder& self = qp.responder;
  const PacketHeader& header = inbound.packet.header;
  const bool first = header.has(packet_flag::first) && skip == 0;
  const bool last = header.has(packet_flag::last);
  const bool placed = header.has(packet_flag::placed);
  if (first != (self.assembly == Assembly::none) || (!first && self.assembly != Assembly::write) ||
      (placed && !(header.has(packet_flag::first) && last))) {
    return refuse_request(engine, qp, syndrome::nak_invalid_request);
  }
  if (first) {
    const RdmaHeader& rdma = inbound.packet.rdma;
    if (!may_write(engine, qp, rdma.rkey, rdma.remote_address, rdma.length)) {
      return refuse_request(engine, qp, syndrome::nak_remote_access);
    }
    self.write_address = rdma.remote_address;
    self.write_rkey = rdma.rkey;
    self.write_remaining = rdma.length;
    self.offset = 0;
  }
  const std::uint32_t carried = placed ? inbound.packet.rdma.length : header.payload_bytes;
  const std::uint32_t skipped = skip * qp.mtu_bytes;
  const std::uint32_t bytes = carried - skipped;
  if (!has_legal_size(qp, header, carried) || bytes > self.write_remaining || (last && bytes != self.write_remaining)) {
    return refuse_request(engine, qp, syndrome::nak_invalid_request);
  }
  const bool notifies = last && header.has(packet_flag::immediate);
  if (notifies && !have_receive(engine, qp)) return no_receive(engine, qp);
  if (bytes > 0 && !placed) {
    // The region may have gone since the first packet.
    if (!may_write(engine, qp, self.write_rkey, self.write_address, bytes)) {
      return refuse_request(engine, qp, syndrome::nak_remote_access);
    }
    const Piece target{reinterpret_cast<std::byte*>(self.write_address), bytes, LKey{self.write_rkey}};
    if (!engine.wire().fetch(inbound, skipped, {&target, 1})) {
      ++engine.counters.dropped;
      return Outcome::deferred;
    }
  }
  self.assembly = last ? Assembly::none : Assembly::write;
  self.write_address += bytes;
  self.write_remaining -= bytes;
  self.offset += bytes;
  advance(qp, header.packet_count - skip);
  answers::owe_acknowledgement(engine, qp, header);
  if (notifies) deliver(engine, qp, header, IBV_WC_RECV_RDMA_WITH_IMM, self.offset);
  return Outcome::executed;
}

bool may_read(const Engine& engine, const QueuePair& qp, const RdmaHeader& rdma) {
  if (rdma.length == 0) return true;
  return (qp.attributes.qp_access_flags & IBV_ACCESS_REMOTE_READ) != 0 &&
         engine.regions.allows_remote(RKey{rdma.rkey}, rdma.remote_address, rdma.length, qp.settings.domain,
                                      IBV_ACCESS_REMOTE_READ);
}

Response read_response(const QueuePair& qp, Psn psn, const RdmaHeader& rdma) {
  return {.psn = psn,
          .packets = qp.packets_for(rdma.length),
          .address = rdma.remote_address,
          .remaining = rdma.length,
          .rkey = RKey{rdma.rkey}};
}

Outcome execute_read(Engine& engine, QueuePair& qp, const Packet& packet) {
  if (qp.responder.assembly != Assembly::none || packet.rdma.length > engine.config.limits.max_msg_bytes ||
      !answers::has_room(qp, false)) {
    return refuse_request(engine, qp, syndrome::nak_invalid_request);
  }
  if (!may_read(engine, qp, packet.rdma)) return refuse_request(engine, qp, syndrome::nak_remote_access);
  const Response response = read_response(qp, qp.responder.expected, packet.rdma);
  advance(qp, response.packets);
  answers::owe_response(engine, qp, response);
  return Outcome::executed;
}

std::uint64_t execute_on_memory(PacketKind kind, const AtomicHeader& atomic) {
  std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(atomic.remote_address));
  if (kind == PacketKind::fetch_add) return word.fetch_add(atomic.swap_or_add);
  std::uint64_t original = atomic.compare;
  word.compare_exchange_strong(original, atomic.swap_or_add);
  return original;
}

Outcome execute_atomic(Engine& engine, QueuePair& qp, const Packet& packet) {
  Responder& self = qp.responder;
  const AtomicHeader& atomic = packet.atomic;
  if (self.assembly != Assembly::none || atomic.remote_address % sizeof(std::uint64_t) != 0 ||
      !answers::has_room(qp, false)) {
    return refuse_request(engine, qp, syndrome::nak_invalid_request);
  }
  if ((qp.attributes.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) == 0 ||
      !engine.regions.allows_remote(RKey{atomic.rkey}, atomic.remote_address, sizeof(std::uint64_t), qp.settings.domain,
                                    IBV_ACCESS_REMOTE_ATOMIC)) {
    return refuse_request(engine, qp, syndrome::nak_remote_access);
  }
  const std::uint64_t original = execute_on_memory(packet.header.kind, atomic);
  self.saved_atomics[self.next_saved] = {self.expected, original, true};
  self.next_saved = (self.next_saved + 1) % static_cast<std::uint32_t>(self.saved_atomics.size());
  const Response response{.is_atomic = true, .psn = self.expected, .original = original};
  advance(qp, 1);
  answers::owe_response(engine, qp, response);
  return Outcome::executed;
}

// Writes that the requester placed and completed by itself: their PSNs are all that is left of them.
Outcome pass_placed(Engine& engine, QueuePair& qp, const PacketHeader& header, std::uint32_t skip) {
  if (qp.responder.assembly != Assembly::none) return refuse_request(engine, qp, syndrome::nak_invalid_request);
  advance(qp, header.packet_count - skip);
  return Outcome::executed;
}

Outcome execute(Engine& engine, QueuePair& qp, const InboundPacket& inbound, std::uint32_t skip) {
  switch (inbound.packet.header.kind) {
    case PacketKind::send:
      return execute_send(engine, qp, inbound, skip);
    case PacketKind::write:
      return execute_write(engine, qp, inbound, skip);
    case PacketKind::read_request:
      return execute_read(engine, qp, inbound.packet);
    case PacketKind::compare_swap:
    case PacketKind::fetch_add:
      return execute_atomic(engine, qp, inbound.packet);
    case PacketKind::placed_writes:
      return pass_placed(engine, qp, inbound.packet.header, skip);
    case PacketKind::read_response:
    case PacketKind::atomic_response:
    case PacketKind::acknowledge:
      break;  // not requests: Engine::dispatch never sends them here
  }
  return Outcome::refused;
}

// A request that was executed before: its answer was lost, so it is given again, but nothing is done twice
// (specification, volume 1, 9.7.5.1.4): sends and writes are acknowledged, READs read again, atomics answered as saved.
void repeat_answer(Engine& engine, QueuePair& qp, const Packet& packet) {
  Responder& self = qp.responder;
  ++engine.counters.duplicates;
  switch (packet.header.kind) {
    case PacketKind::read_request:
      if (answers::has_room(qp, true) && may_read(engine, qp, packet.rdma)) {
        Response response = read_response(qp, packet.header.psn(), packet.rdma);
        response.is_repeated = true;
        answers::owe_response(engine, qp, response);
      }
      return;
    case PacketKind::compare_swap:
    case PacketKind::fetch_add:
      for (const SavedAtomic& saved : self.saved_atomics) {
        if (!saved.valid || saved.psn != packet.header.psn() || !answers::has_room(qp, true)) continue;
        const Response response{.is_atomic = true, .is_repeated = true, .psn = saved.psn, .original = saved.original};
        return answers::owe_response(engine, qp, response);
      }
      return;
    default:
      self.acknowledge_owed = true;
      engine.owe_at_once(qp);
  }
}

void on_gap(Engine& engine, QueuePair& qp) {
  if (qp.responder.gap_told) return;
  qp.responder.gap_told = true;
  ++engine.counters.sequence_nak_sent;
  answers::owe_nak(engine, qp, syndrome::nak_sequence);
}

void on_reliable_request(Engine& engine, QueuePair& qp, const InboundPacket& inbound) {
  const PacketHeader& header = inbound.packet.header;
  const std::int32_t ahead = header.psn().distance_from(qp.responder.expected);
  if (ahead > 0) return on_gap(engine, qp);
  const auto behind = static_cast<std::uint32_t>(-ahead);
  const bool is_train =
      header.kind == PacketKind::send || header.kind == PacketKind::write || header.kind == PacketKind::placed_writes;
  if (behind > 0 && (!is_train || behind >= header.packet_count)) return repeat_answer(engine, qp, inbound.packet);
  (void)execute(engine, qp, inbound, behind);
}

// Lost packets take their message with them; the next message starts anew.
void on_unreliable_request(Engine& engine, QueuePair& qp, const InboundPacket& inbound) {
  Responder& self = qp.responder;
  const PacketHeader& header = inbound.packet.header;
  if (header.psn() != self.expected) {
    self.assembly = Assembly::none;
    self.expected = header.psn();
  }
  const Psn next = header.psn().plus(header.packet_count);
  if (self.assembly == Assembly::none && !header.has(packet_flag::first)) {
    ++engine.counters.dropped;
  } else {
    if (header.has(packet_flag::first)) self.assembly = Assembly::none;
    if (execute(engine, qp, inbound, 0) != Outcome::executed) self.assembly = Assembly::none;
  }
  self.expected = next;
}

}  // namespace

void on_request(Engine& engine, QueuePair& qp, const InboundPacket& inbound) {
  if (!qp.executes_requests() || engine.faults.stall_responder) {
    ++engine.counters.dropped;
    return;
  }
  if (!qp.established_told && qp.state == IBV_QPS_RTR) {
    qp.established_told = true;
    engine.tell(qp, IBV_EVENT_COMM_EST);
  }
  if (qp.reliable()) {
    on_reliable_request(engine, qp, inbound);
  } else {
    on_unreliable_request(engine, qp, inbound);
  }
}

}  // namespace verbatim::soft::responder
