#include "device/soft/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "device/soft/engine/answers.hpp"
#include "device/soft/engine/checksum.hpp"
#include "device/soft/engine/datagram.hpp"
#include "device/soft/engine/requester.hpp"
#include "device/soft/engine/responder.hpp"

namespace verbatim::soft {

Engine::Engine(const DeviceConfig& given, Wire& wire, const Clock& clock, EventSink& events)
    : config(given),
      faults(given.faults),
      regions(given.limits.max_mr),
      wire_(&wire),
      train_limit_(wire.train_limit()),
      clock_(clock),
      events_(events) {
  for (const PortConfig& port : config.ports) {
    ports_.push_back({port.gids, port.pkeys, port.max_mtu, port.active_mtu, port.active});
  }
}

// -- the loop ------------------------------------------------------------------------------------------------------

void Engine::progress(const CompletionQueue* enough, std::uint32_t wanted) {
  if (dying_ != nullptr) kill(*std::exchange(dying_, nullptr));
  // 1. What is owed from before: ACKs that no reply carried, answers and requests that the wire had no room for.
  if (!owing_.empty()) settle_owed();
  // 2. What has arrived.
  for (std::uint32_t taken = 0; taken < max_packets_per_progress; ++taken) {
    if (enough != nullptr && enough->size() >= wanted) break;
    const InboundPacket* inbound = wire_->receive(last_now_);
    if (inbound == nullptr) break;
    if (!inbound->packet.header.has(packet_flag::checksummed)) {
      dispatch(*inbound);
    } else {
      dispatch_checked(*inbound);
    }
    wire_->release();
  }
  // 3. Answers that somebody waits for.
  if (settles_at_once_) settle_owed();
  // 4. What has waited too long.
  if (!timers.empty() && ++progress_calls_ >= progress_calls_per_clock) {
    progress_calls_ = 0;
    run_timers(now());
  }
}

void Engine::run_timers(Time now) {
  last_now_ = now;
  while (QueuePair* due = timers.take_due(now)) requester::on_timer(*this, *due);
}

void Engine::settle_owed() {
  settles_at_once_ = false;
  settling_.swap(owing_);
  for (QueuePair* queue_pair : settling_) {
    queue_pair->owes_work = false;
    if (queue_pair->settings.type == IBV_QPT_UD) {
      datagram::transmit(*this, *queue_pair);
      continue;
    }
    // Mostly an ACK that a packet of ours has carried since.
    if (answers::owes(*queue_pair) && !answers::send_owed(*this, *queue_pair)) owe(*queue_pair);
    if (queue_pair->sends.cursor() != queue_pair->sends.tail()) requester::transmit(*this, *queue_pair);
  }
  settling_.clear();
}

// A packet from a wire that damages some: only what passes the check is looked at.
void Engine::dispatch_checked(const InboundPacket& inbound) {
  std::array<std::byte, mtu_bytes(IBV_MTU_4096) + checksum_bytes> payload;
  const std::uint32_t bytes = inbound.packet.header.payload_bytes;
  const Piece room{payload.data(), bytes, LKey{}};
  if (bytes > payload.size() || !wire_->fetch(inbound, 0, {&room, 1}) ||
      !checksum_holds(inbound.packet, std::span(payload).first(bytes))) {
    ++counters.bad_packets;
    return;
  }
  InboundPacket checked = inbound;
  checked.packet.header.payload_bytes -= checksum_bytes;
  checked.payload = payload.data();
  dispatch(checked);
}

void Engine::dispatch(const InboundPacket& inbound) {
  const PacketHeader& header = inbound.packet.header;
  QueuePair* queue_pair = find(header.destination());
  ++counters.packets_received;
  if (queue_pair == nullptr || queue_pair->service() != header.service() || queue_pair->attributes.port_num == 0 ||
      !port(queue_pair->attributes.port_num).active) {
    ++counters.dropped;
    return;
  }
  // Limited members (top bit clear) only talk to full ones (specification, volume 1, 10.9.3).
  const std::uint16_t both = header.pkey & queue_pair->pkey;
  if (((header.pkey ^ queue_pair->pkey) & 0x7fff) != 0 || ((header.pkey | queue_pair->pkey) & 0x8000) == 0 ||
      both == 0) {
    ++counters.bad_pkeys;
    return;
  }
  if (header.service() == Service::ud) return datagram::on_packet(*this, *queue_pair, inbound);
  if (header.source_qpn().value != queue_pair->attributes.dest_qp_num) {
    ++counters.dropped;
    return;
  }
  const AddressVector& back = queue_pair->address;
  if (header.service_level != back.service_level || header.traffic_class != back.traffic_class) [[unlikely]]
    ++counters.uneven_marks;
  if (!queue_pair->reliable()) return responder::on_request(*this, *queue_pair, inbound);
  if (queue_pair->sends_requests() && (header.acknowledgement & PacketHeader::acknowledgement_valid) != 0) {
    requester::on_piggybacked(*this, *queue_pair, Psn(header.acknowledgement));
  }
  const bool takes_answers = queue_pair->sends_requests();  // that may have been its end
  switch (header.kind) {
    case PacketKind::send:
    case PacketKind::write:
    case PacketKind::read_request:
    case PacketKind::compare_swap:
    case PacketKind::fetch_add:
    case PacketKind::placed_writes:
      return responder::on_request(*this, *queue_pair, inbound);
    case PacketKind::read_response:
      if (takes_answers) requester::on_read_response(*this, *queue_pair, inbound);
      return;
    case PacketKind::atomic_response:
      if (takes_answers) requester::on_atomic_response(*this, *queue_pair, inbound.packet);
      return;
    case PacketKind::acknowledge:
      if (takes_answers) requester::on_acknowledge(*this, *queue_pair, header);
      return;
  }
}

bool Engine::transmit(QueuePair& queue_pair, const AddressVector& address, Packet& packet,
                      std::span<const Piece> pieces) {
  if (dying_ == &queue_pair) return true;  // nothing leaves any more
  PacketHeader& header = packet.header;
  header.pkey = queue_pair.pkey;
  header.service_level = address.service_level;
  header.traffic_class = address.traffic_class;
  header.sequence |= static_cast<std::uint32_t>(address.hop_limit) << 24;
  if (ports_[address.port - 1U].active &&
      wire_->send(*address.path, packet, pieces, queue_pair.qpn, last_now_) == SendResult::full) {
    return false;
  }
  ++counters.packets_sent;
  ++queue_pair.requester.packets_sent;
  if (faults.kill_qpn == queue_pair.qpn.value && faults.kill_after_packets == queue_pair.requester.packets_sent)
    dying_ = &queue_pair;
  return true;
}

// -- completions ---------------------------------------------------------------------------------------------------

Completion* Engine::add_completion(CompletionQueue& cq, QueuePair& queue_pair, bool is_receive,
                                   std::uint32_t send_position) {
  const bool was_broken = cq.overrun();
  Completion* added = cq.add();
  Completion lost;
  Completion& completion = added != nullptr ? *added : lost;
  completion.queue_pair = &queue_pair;
  completion.qpn = queue_pair.qpn;
  completion.send_position = send_position;
  completion.is_receive = is_receive;
  if (added == nullptr) [[unlikely]] {
    polled(lost);  // nobody will poll it: its slots go back now
    ++counters.cq_overruns;
    if (!was_broken) events_.queue_event(cq, IBV_EVENT_CQ_ERR);
    enter_error(queue_pair);
  }
  return added;
}

// Errors count as solicited (ibv_req_notify_cq(3)).
void Engine::notify(CompletionQueue& cq, bool solicited) {
  if (cq.armed == Arming::none) return;
  if (cq.armed == Arming::solicited_only && !solicited) return;
  cq.armed = Arming::none;
  events_.completion_event(cq);
}

namespace {
ibv_wc_opcode completion_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}
}  // namespace

void Engine::complete_send(QueuePair& queue_pair, ibv_wc_status status) {
  SendQueue& sends = queue_pair.sends;
  Requester& requester = queue_pair.requester;
  const std::uint32_t position = sends.head();
  const SendRequest& request = sends.at(position);
  if (position == requester.first_unsent) {
    ++requester.first_unsent;  // ends without ever having been numbered
  } else if (!request.placed) {
    --requester.unplaced;
  }
  if (position == sends.cursor()) {
    requester.cursor_packet = 0;
  } else if (is_read_or_atomic(request)) {
    --requester.reads_outstanding;
  }
  const bool told =
      status != IBV_WC_SUCCESS || queue_pair.settings.signal_all || (request.flags & IBV_SEND_SIGNALED) != 0;
  const std::uint32_t retired = sends.retire_head();
  if (!told) return;
  CompletionQueue& cq = *queue_pair.settings.send_cq;
  Completion* completion = add_completion(cq, queue_pair, false, retired);
  if (completion == nullptr) [[unlikely]]
    return;
  completion->wr_id = request.wr_id;
  completion->byte_len = request.length;
  completion->immediate = 0;
  completion->source_qpn = {};
  completion->status = static_cast<std::uint8_t>(status);
  completion->opcode = static_cast<std::uint8_t>(completion_opcode(request.opcode));
  completion->flags = 0;
  completion->service_level = 0;
  notify(cq, status != IBV_WC_SUCCESS);
}

void Engine::complete_receive(QueuePair& queue_pair, const ReceiveRequest& request, const Received& received,
                              bool solicited) {
  CompletionQueue& cq = *queue_pair.settings.receive_cq;
  Completion* completion = add_completion(cq, queue_pair, true, 0);
  if (completion == nullptr) [[unlikely]]
    return;
  completion->wr_id = request.wr_id;
  completion->byte_len = received.bytes;
  completion->immediate = received.immediate;
  completion->source_qpn = received.source;
  completion->status = static_cast<std::uint8_t>(received.status);
  completion->opcode = static_cast<std::uint8_t>(received.opcode);
  completion->flags = static_cast<std::uint8_t>(received.flags);
  completion->service_level = received.service_level;
  notify(cq, solicited || received.status != IBV_WC_SUCCESS);
}

bool Engine::take_receive(QueuePair& queue_pair, ReceiveRequest& request) {
  ReceiveQueue& queue = queue_pair.receive_queue();
  if (queue.waiting() == 0) return false;
  request = queue.take();
  SharedReceiveQueue* srq = queue_pair.settings.srq;
  if (srq != nullptr && srq->limit > 0 && queue.waiting() < srq->limit) {
    srq->limit = 0;  // one event for each time that it is armed
    events_.queue_event(*srq, IBV_EVENT_SRQ_LIMIT_REACHED);
  }
  return true;
}

int Engine::poll(CompletionQueue& cq, int count, ibv_wc* completions) {
  int polled_count = 0;
  for (; polled_count < count && cq.size() > 0; ++polled_count, cq.pop()) {
    cq.front().copy_to(completions[polled_count]);
    polled(cq.front());
  }
  return polled_count == 0 && count > 0 && cq.overrun() ? -1 : polled_count;
}

void Engine::polled(const Completion& completion) {
  if (completion.is_receive) {
    completion.queue_pair->receive_queue().release();
  } else {
    completion.queue_pair->sends.free_up_to(completion.send_position);
  }
}

void Engine::arm(CompletionQueue& cq, Arming arming) {
  // Armed for any is more than armed for solicited only: the weaker call does not take the stronger back.
  if (cq.armed != Arming::any) cq.armed = arming;
}

void Engine::fail_send(QueuePair& queue_pair, ibv_wc_status status) {
  complete_send(queue_pair, status);
  if (queue_pair.reliable()) return enter_error(queue_pair);
  // An unreliable queue pair stops sending but goes on receiving (specification, volume 1, 10.3.1.6).
  if (queue_pair.state != IBV_QPS_RTS && queue_pair.state != IBV_QPS_SQD) return;
  queue_pair.state = IBV_QPS_SQE;
  publish(queue_pair);
  while (!queue_pair.sends.empty()) complete_send(queue_pair, IBV_WC_WR_FLUSH_ERR);
}

// -- tables --------------------------------------------------------------------------------------------------------

std::optional<AddressVector> Engine::resolve(const ibv_ah_attr& attributes) {
  // RoCE has no route without a GRH, and none to nowhere.
  if (attributes.port_num == 0 || attributes.port_num > ports_.size() || attributes.is_global == 0 ||
      is_empty(attributes.grh.dgid)) {
    return std::nullopt;
  }
  const Port& from = port(attributes.port_num);
  if (attributes.grh.sgid_index >= from.gids.size() || is_empty(from.gids[attributes.grh.sgid_index].gid))
    return std::nullopt;
  const ibv_gid& source = from.gids[attributes.grh.sgid_index].gid;
  return AddressVector{.path = &wire_->path_to(source, attributes.grh.dgid),
                       .source_gid = source,
                       .destination_gid = attributes.grh.dgid,
                       .flow_label = attributes.grh.flow_label,
                       .service_level = attributes.sl,
                       .traffic_class = attributes.grh.traffic_class,
                       .hop_limit = attributes.grh.hop_limit,
                       .port = attributes.port_num};
}

void Engine::set_port_active(std::uint8_t number, bool active) {
  Port& changed = port(number);
  if (changed.active == active) return;
  changed.active = active;
  events_.port_event(number, active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void Engine::set_active_mtu(std::uint8_t number, ibv_mtu mtu) {
  port(number).active_mtu = std::min(mtu, port(number).max_mtu);
  if (port(number).active) events_.port_event(number, IBV_EVENT_PORT_ACTIVE);
}

void Engine::set_gid(std::uint8_t number, std::uint32_t index, const GidConfig& gid) {
  std::vector<GidConfig>& gids = port(number).gids;
  std::vector<GidConfig> before = gids;
  if (index >= gids.size()) gids.resize(index + 1);
  gids[index] = gid;
  try {
    tell_wire_gids();
  } catch (...) {
    gids = std::move(before);
    throw;
  }
  events_.port_event(number, IBV_EVENT_GID_CHANGE);
}

void Engine::set_pkey(std::uint8_t number, std::uint32_t index, std::uint16_t pkey) {
  Port& changed = port(number);
  if (index >= changed.pkeys.size()) changed.pkeys.resize(index + 1);
  changed.pkeys[index] = pkey;
  events_.port_event(number, IBV_EVENT_PKEY_CHANGE);
}

void Engine::tell_wire_gids() {
  std::vector<ibv_gid> gids;
  for (const Port& each : ports_) {
    for (const GidConfig& entry : each.gids) {
      if (!is_empty(entry.gid)) gids.push_back(entry.gid);
    }
  }
  wire_->gids_changed(gids);
}

}  // namespace verbatim::soft
