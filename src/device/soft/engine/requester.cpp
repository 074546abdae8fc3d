#include "device/soft/engine/requester.hpp"

#include <algorithm>
#include <utility>

#include "device/queue_pair/units.hpp"
#include "device/soft/engine/answers.hpp"
#include "device/soft/engine/connected_packet.hpp"
#include "device/soft/engine/pieces.hpp"

namespace verbatim::soft::requester {
namespace {

enum class Step { sent, wire_full };

bool is_write(const SendRequest& request) {
  return request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

// The PSN of the packet that is sent next.
Psn psn_at_cursor(QueuePair& qp) {
  const std::uint32_t cursor = qp.sends.cursor();
  if (cursor == qp.requester.first_unsent) return qp.requester.next_psn;
  return qp.sends.at(cursor).first_psn.plus(qp.requester.cursor_packet);
}

// The oldest PSN that is not acknowledged.
Psn oldest_psn(QueuePair& qp) {
  const std::uint32_t head = qp.sends.head();
  return head == qp.requester.first_unsent ? qp.requester.next_psn : qp.sends.at(head).first_psn;
}

// Requests that were sent, or that only a full wire kept from it.
bool has_outstanding(const QueuePair& qp) {
  return qp.sends.head() != qp.requester.first_unsent;
}

// What can be known to be wrong before a request is sent.
ibv_wc_status find_local_fault(const Engine& engine, QueuePair& qp, const SendRequest& request) {
  if (request.length > engine.config.limits.max_msg_bytes) return IBV_WC_LOC_LEN_ERR;
  if ((request.flags & IBV_SEND_INLINE) != 0) return IBV_WC_SUCCESS;
  const bool writes = is_read_or_atomic(request);
  const auto pieces = qp.sends.pieces(qp.sends.cursor());
  return allowed(engine.regions, pieces, qp.settings.domain, writes) ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

// Gives the request at the cursor its PSNs, the first time that it is about to be sent.
void number(Engine& engine, QueuePair& qp, SendRequest& request) {
  request.failed = find_local_fault(engine, qp, request);
  if (request.failed != IBV_WC_SUCCESS) return;
  request.packets = qp.packets_for(request.length);
  if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) request.packets = 1;
  request.first_psn = qp.requester.next_psn;
  qp.requester.next_psn = qp.requester.next_psn.plus(request.packets);
  ++qp.requester.first_unsent;
  ++qp.requester.unplaced;
}

bool may_send(Engine& engine, QueuePair& qp) {
  Requester& self = qp.requester;
  const std::uint32_t cursor = qp.sends.cursor();
  SendRequest& request = qp.sends.at(cursor);
  if (!qp.sends_requests() || self.waits_for_rnr) return false;
  if (request.failed != IBV_WC_SUCCESS) {
    // Requests end in order: a bad one waits until all before it are done.
    if (cursor == qp.sends.head()) engine.fail_send(qp, request.failed);
    return false;
  }
  const bool fresh = cursor == self.first_unsent;
  if (fresh && qp.state == IBV_QPS_SQD) return false;
  if (self.cursor_packet == 0) {
    if ((request.flags & IBV_SEND_FENCE) != 0 && self.reads_outstanding > 0) return false;
    if (is_read_or_atomic(request) && self.reads_outstanding >= qp.attributes.max_rd_atomic) return false;
  }
  if (has_outstanding(qp) &&
      psn_at_cursor(qp).distance_from(oldest_psn(qp)) >= static_cast<std::int32_t>(Engine::max_outstanding_packets)) {
    return false;
  }
  if (fresh) {
    number(engine, qp, request);
    if (request.failed != IBV_WC_SUCCESS) return may_send(engine, qp);
  }
  return true;
}

// Sends one packet of a request; an owed ACK rides along where the wire is faultless. (With faults every ACK is a
// packet of its own, so that it can be lost alone.)
bool transmit_with_acknowledgement(Engine& engine, QueuePair& qp, Packet& packet, std::span<const Piece> pieces) {
  Psn acknowledged;
  const bool carries = qp.reliable() && engine.train_limit() > 1 && answers::take_acknowledgement(qp, acknowledged);
  if (carries) packet.header.acknowledgement = PacketHeader::acknowledgement_valid | acknowledged.value();
  if (engine.transmit(qp, qp.address, packet, pieces)) return true;
  if (carries) qp.responder.acknowledge_owed = true;
  return false;
}

// Before a packet, the target hears of the PSNs right before it that placed writes took.
bool transmit_in_order(Engine& engine, QueuePair& qp, Packet& packet, std::span<const Piece> pieces) {
  std::uint32_t& untold = qp.requester.placed_packets;
  while (untold > 0) {
    const std::uint32_t count = std::min(untold, 0xffffU);
    Packet placed = connected_packet(qp, PacketKind::placed_writes, packet.header.psn().minus(untold), count);
    if (!engine.transmit(qp, qp.address, placed, {})) return false;
    untold -= count;
  }
  return transmit_with_acknowledgement(engine, qp, packet, pieces);
}

Step send_read_or_atomic(Engine& engine, QueuePair& qp, SendRequest& request) {
  if (request.opcode == IBV_WR_RDMA_READ) {
    // A READ whose answer came in part is asked for again from where it stopped.
    const std::uint32_t done_bytes = request.received * qp.mtu_bytes;
    Packet packet = connected_packet(qp, PacketKind::read_request, request.first_psn.plus(request.received), 1);
    packet.header.flags = packet_flag::first | packet_flag::last;
    packet.rdma = {request.remote_address + done_bytes, request.rkey, request.length - done_bytes};
    return transmit_in_order(engine, qp, packet, {}) ? Step::sent : Step::wire_full;
  }
  const bool swaps = request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  Packet packet = connected_packet(qp, swaps ? PacketKind::compare_swap : PacketKind::fetch_add, request.first_psn, 1);
  packet.header.flags = packet_flag::first | packet_flag::last;
  packet.atomic = {request.remote_address, request.rkey, 0, swaps ? request.swap : request.compare_or_add,
                   swaps ? request.compare_or_add : 0};
  return transmit_in_order(engine, qp, packet, {}) ? Step::sent : Step::wire_full;
}

// Places the data of a whole write that is sent for the first time, if nothing before it is on its way unplaced.
bool place(Engine& engine, QueuePair& qp, SendRequest& request, const Packet& packet, std::span<const Piece> pieces) {
  const bool first_time = packet.header.psn() == qp.requester.highest;
  const bool whole = packet.header.has(packet_flag::first) && packet.header.has(packet_flag::last);
  if (!qp.reliable() || !first_time || !whole || qp.requester.unplaced != 1) return false;
  if (!engine.wire().place(*qp.address.path, packet, pieces)) return false;
  request.placed = true;
  --qp.requester.unplaced;
  ++engine.counters.placed_writes;
  return true;
}

// A plain write that was placed is complete, and nothing of it travels.
bool completes_at_once(const SendRequest& request) {
  return request.placed && request.opcode == IBV_WR_RDMA_WRITE;
}

Step send_or_write(Engine& engine, QueuePair& qp, SendRequest& request) {
  Requester& self = qp.requester;
  const bool writes = is_write(request);
  const std::uint32_t mtu = qp.mtu_bytes;
  const std::uint32_t count = std::min({request.packets - self.cursor_packet, engine.train_limit(), 0xffffU});
  const std::uint32_t offset = self.cursor_packet * mtu;
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(request.length - offset, std::uint64_t{count} * mtu));
  Packet packet = connected_packet(qp, writes ? PacketKind::write : PacketKind::send,
                                   request.first_psn.plus(self.cursor_packet), count);
  packet.header.payload_bytes = bytes;
  if (offset == 0) packet.header.flags |= packet_flag::first;
  if (self.cursor_packet + count == request.packets) {
    packet.header.flags |= packet_flag::last;
    // The application waits for the completion of a signalled request; others can be acknowledged with what follows.
    if (qp.settings.signal_all || (request.flags & IBV_SEND_SIGNALED) != 0)
      packet.header.flags |= packet_flag::ack_request;
    packet.header.immediate = request.immediate;
    if (request.opcode == IBV_WR_SEND_WITH_IMM || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
      packet.header.flags |= packet_flag::immediate;
    }
    if ((request.flags & IBV_SEND_SOLICITED) != 0) packet.header.flags |= packet_flag::solicited;
  }
  if (writes) packet.rdma = {request.remote_address, request.rkey, request.length};

  const auto whole = qp.sends.pieces(qp.sends.cursor());
  const auto send_pieces = [&](std::span<const Piece> pieces) {
    if (writes && !request.placed) (void)place(engine, qp, request, packet, pieces);
    if (completes_at_once(request)) {
      self.placed_packets += request.packets;
      return Step::sent;
    }
    if (request.placed) {
      packet.header.flags |= packet_flag::placed;
      packet.header.payload_bytes = 0;
      pieces = {};
    }
    return transmit_in_order(engine, qp, packet, pieces) ? Step::sent : Step::wire_full;
  };
  const Step step =
      bytes == request.length ? send_pieces(whole) : send_pieces(PieceRange(whole, offset, bytes).pieces());
  if (step != Step::sent) return step;
  self.cursor_packet += count;
  return step;
}

// One packet of the request at the cursor; moves the cursor on.
Step send_next(Engine& engine, QueuePair& qp) {
  Requester& self = qp.requester;
  const std::uint32_t cursor = qp.sends.cursor();
  SendRequest& request = qp.sends.at(cursor);
  if (request.first_psn.plus(self.cursor_packet).before(self.highest)) ++engine.counters.retransmits;
  if (is_read_or_atomic(request)) {
    const Step step = send_read_or_atomic(engine, qp, request);
    if (step != Step::sent) return step;
    self.cursor_packet = request.packets;
    ++self.reads_outstanding;
  } else {
    const Step step = send_or_write(engine, qp, request);
    if (step != Step::sent) return step;
  }
  const Psn sent_up_to = request.first_psn.plus(self.cursor_packet);
  if (self.highest.before(sent_up_to)) self.highest = sent_up_to;
  if (self.cursor_packet < request.packets) return Step::sent;
  self.cursor_packet = 0;
  qp.sends.set_cursor(cursor + 1);
  // An unreliable service is done when the packet is on its way.
  if (!qp.reliable() || completes_at_once(request)) engine.complete_send(qp, IBV_WC_SUCCESS);
  return Step::sent;
}

// Requests are on the way, and `moved` says whether one was just sent or acknowledged. A timer that runs already is not
// set anew, which would take a look at the clock for each message: when it fires it sees that there was progress, and
// runs once more. So silence is noticed after one to two timeouts; a device may take up to four (specification, volume
// 1, 9.7.6.1.3).
void keep_ack_timer(Engine& engine, QueuePair& qp, bool moved) {
  if (!qp.reliable() || !qp.ack_timeout || !has_outstanding(qp)) return;
  if (qp.deadline != never) {
    qp.requester.moved |= moved;
    return;
  }
  qp.requester.moved = false;
  engine.timers.start(qp, engine.now() + *qp.ack_timeout);
}

// Sends again from `psn` on. It must be outstanding.
void rewind(QueuePair& qp, Psn psn) {
  Requester& self = qp.requester;
  std::uint32_t position = qp.sends.head();
  while (position != self.first_unsent) {
    const SendRequest& request = qp.sends.at(position);
    if (psn.before(request.first_psn.plus(request.packets))) break;
    ++position;
  }
  if (static_cast<std::int32_t>(position - qp.sends.cursor()) > 0) return;  // not sent again yet: nothing to go back on
  for (std::uint32_t at = position; at != qp.sends.cursor(); ++at) {
    if (is_read_or_atomic(qp.sends.at(at))) --self.reads_outstanding;
  }
  qp.sends.set_cursor(position);
  self.cursor_packet = 0;
  if (position == self.first_unsent) return;
  const SendRequest& request = qp.sends.at(position);
  if (!is_read_or_atomic(request))
    self.cursor_packet = static_cast<std::uint32_t>(std::max(0, psn.distance_from(request.first_psn)));
}

// Completes every request that ends at or before `psn`. A READ or atomic only its answer completes: an ACK behind one
// says that the answer was lost.
void retire_through(Engine& engine, QueuePair& qp, Psn psn) {
  Requester& self = qp.requester;
  bool progress = false;
  bool answer_lost = false;
  while (qp.sends.head() != self.first_unsent) {
    const SendRequest& request = qp.sends.at(qp.sends.head());
    if (!request.first_psn.plus(request.packets - 1).at_or_before(psn)) break;
    if (is_read_or_atomic(request) && !request.answered) {
      answer_lost = true;
      break;
    }
    engine.complete_send(qp, IBV_WC_SUCCESS);
    progress = true;
    if (qp.state == IBV_QPS_ERR) return;  // the completion queue overran
  }
  if (progress) {
    self.retries_left = qp.attributes.retry_cnt;
    self.rnr_retries_left = qp.attributes.rnr_retry;
    self.gap_seen = false;
    if (!self.waits_for_rnr) keep_ack_timer(engine, qp, true);
  }
  if (answer_lost && !self.gap_seen) {
    self.gap_seen = true;
    const SendRequest& request = qp.sends.at(qp.sends.head());
    rewind(qp, request.first_psn.plus(request.received));
  }
}

// Whether a response can be meant for something that is on its way.
bool outstanding(QueuePair& qp, Psn psn) {
  return qp.sends.head() != qp.requester.first_unsent && oldest_psn(qp).at_or_before(psn) &&
         psn.before(qp.requester.highest);
}

// The request that a response with `psn` can be for: the oldest one, since answers come in order. None if that one
// waits for an answer that was lost: it is asked for again.
SendRequest* answered_with(Engine& engine, QueuePair& qp, Psn psn) {
  if (!outstanding(qp, psn)) return nullptr;
  retire_through(engine, qp, psn.previous());
  if (!outstanding(qp, psn)) return nullptr;
  SendRequest& request = qp.sends.at(qp.sends.head());
  if (psn.before(request.first_psn.plus(request.packets))) return &request;
  transmit(engine, qp);
  return nullptr;
}

// One more try for what starts at `psn`, or the end if there were enough.
void try_again(Engine& engine, QueuePair& qp, Psn psn) {
  if (qp.requester.retries_left == 0) return engine.fail_send(qp, IBV_WC_RETRY_EXC_ERR);
  --qp.requester.retries_left;
  rewind(qp, psn);
  TimerQueue::stop(qp);
  transmit(engine, qp);
}

// The target misses PSNs before everything that is outstanding: what told it of placed writes was lost.
void tell_placed_again(Engine& engine, QueuePair& qp, Psn psn) {
  const Psn oldest = oldest_psn(qp);
  qp.requester.placed_packets = static_cast<std::uint32_t>(oldest.distance_from(psn));
  try_again(engine, qp, oldest);
}

void on_rnr_nak(Engine& engine, QueuePair& qp, Psn psn, std::uint8_t timer_code) {
  Requester& self = qp.requester;
  ++engine.counters.rnr_nak_received;
  if (self.waits_for_rnr) return;
  if (self.rnr_retries_left == 0) return engine.fail_send(qp, IBV_WC_RNR_RETRY_EXC_ERR);
  if (self.rnr_retries_left != qp::RnrRetry::infinite_code) --self.rnr_retries_left;
  rewind(qp, psn);
  self.waits_for_rnr = true;
  TimerQueue::stop(qp);
  engine.timers.start(qp, engine.now() + qp::RnrTimer::from_code(timer_code).duration());
}

ibv_wc_status status_of_nak(std::uint8_t code) {
  switch (code) {
    case syndrome::nak_remote_access:
      return IBV_WC_REM_ACCESS_ERR;
    case syndrome::nak_remote_operational:
      return IBV_WC_REM_OP_ERR;
    default:
      return IBV_WC_REM_INV_REQ_ERR;
  }
}

}  // namespace

void transmit(Engine& engine, QueuePair& qp) {
  bool sent = false;
  while (qp.sends.cursor() != qp.sends.tail() && may_send(engine, qp)) {
    if (send_next(engine, qp) == Step::wire_full) {
      engine.owe(qp);
      break;
    }
    sent = true;
  }
  if (!qp.requester.waits_for_rnr) keep_ack_timer(engine, qp, sent);
}

void on_piggybacked(Engine& engine, QueuePair& qp, Psn psn) {
  if (!outstanding(qp, psn)) return;
  retire_through(engine, qp, psn);
  tell_if_drained(engine, qp);
  if (qp.sends.cursor() != qp.sends.tail()) transmit(engine, qp);
}

void on_acknowledge(Engine& engine, QueuePair& qp, const PacketHeader& header) {
  const Psn psn = header.psn();
  const auto code = static_cast<std::uint8_t>(header.immediate);
  if ((code & syndrome::class_mask) == syndrome::reserved) return;
  if (code == syndrome::nak_sequence && has_outstanding(qp) && psn.before(oldest_psn(qp))) {
    return tell_placed_again(engine, qp, psn);
  }
  if (!outstanding(qp, psn)) return;
  if ((code & syndrome::class_mask) == 0) return on_piggybacked(engine, qp, psn);
  // A NAK acknowledges everything before the packet that it refuses.
  retire_through(engine, qp, psn.previous());
  if (!outstanding(qp, psn)) return;
  if ((code & syndrome::class_mask) == syndrome::rnr_nak)
    return on_rnr_nak(engine, qp, psn, code & syndrome::value_mask);
  if (code == syndrome::nak_sequence) return try_again(engine, qp, psn);
  engine.fail_send(qp, status_of_nak(code));
}

void on_read_response(Engine& engine, QueuePair& qp, const InboundPacket& inbound) {
  const PacketHeader& header = inbound.packet.header;
  const Psn psn = header.psn();
  SendRequest* const answered = answered_with(engine, qp, psn);
  if (answered == nullptr || answered->opcode != IBV_WR_RDMA_READ) return;
  SendRequest& request = *answered;
  const std::uint32_t position = qp.sends.head();
  const Psn awaited = request.first_psn.plus(request.received);
  if (awaited.before(psn) && !qp.requester.gap_seen) {
    qp.requester.gap_seen = true;
    rewind(qp, awaited);
    return transmit(engine, qp);
  }
  if (psn != awaited) return;
  const std::uint32_t offset = request.received * qp.mtu_bytes;
  const std::uint32_t most = header.packet_count * qp.mtu_bytes;
  const bool last = request.received + header.packet_count == request.packets;
  const std::uint32_t due = last ? request.length - offset : most;
  if (request.received + header.packet_count > request.packets || header.payload_bytes != due) {
    ++engine.counters.bad_packets;
    return;
  }
  const PieceRange target(qp.sends.pieces(position), offset, header.payload_bytes);
  if (!allowed(engine.regions, target.pieces(), qp.settings.domain, true))
    return engine.fail_send(qp, IBV_WC_LOC_PROT_ERR);
  if (!engine.wire().fetch(inbound, 0, target.pieces())) {
    ++engine.counters.dropped;
    return;
  }
  request.received += header.packet_count;
  qp.requester.retries_left = qp.attributes.retry_cnt;
  if (!last) return keep_ack_timer(engine, qp, true);
  request.answered = true;
  on_piggybacked(engine, qp, request.first_psn.plus(request.packets - 1));
}

void on_atomic_response(Engine& engine, QueuePair& qp, const Packet& packet) {
  const Psn psn = packet.header.psn();
  SendRequest* const answered = answered_with(engine, qp, psn);
  if (answered == nullptr || !is_read_or_atomic(*answered) || answered->opcode == IBV_WR_RDMA_READ) return;
  SendRequest& request = *answered;
  const std::uint32_t position = qp.sends.head();
  const PieceRange target(qp.sends.pieces(position), 0, sizeof(std::uint64_t));
  if (!allowed(engine.regions, target.pieces(), qp.settings.domain, true))
    return engine.fail_send(qp, IBV_WC_LOC_PROT_ERR);
  scatter(target.pieces(), reinterpret_cast<const std::byte*>(&packet.result.original));
  request.answered = true;
  on_piggybacked(engine, qp, psn);
}

void on_timer(Engine& engine, QueuePair& qp) {
  if (!qp.sends_requests()) return;
  if (qp.requester.waits_for_rnr) {
    qp.requester.waits_for_rnr = false;
    return transmit(engine, qp);
  }
  if (!has_outstanding(qp)) return;
  if (std::exchange(qp.requester.moved, false)) return engine.timers.start(qp, engine.now() + *qp.ack_timeout);
  ++engine.counters.timeouts;
  qp.requester.gap_seen = false;
  const SendRequest& request = qp.sends.at(qp.sends.head());
  try_again(engine, qp, request.first_psn.plus(request.received));
}

void tell_if_drained(Engine& engine, QueuePair& qp) {
  if (qp.state != IBV_QPS_SQD || qp.drain_told || qp.sends.head() != qp.requester.first_unsent) return;
  qp.drain_told = true;
  if (qp.attributes.en_sqd_async_notify != 0) engine.tell(qp, IBV_EVENT_SQ_DRAINED);
}

}  // namespace verbatim::soft::requester
