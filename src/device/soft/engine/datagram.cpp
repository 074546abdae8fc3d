#include "device/soft/engine/datagram.hpp"

#include <arpa/inet.h>

#include <cstring>

#include "device/soft/engine/pieces.hpp"

namespace verbatim::soft::datagram {
namespace {

constexpr std::uint32_t grh_bytes = 40;

ibv_wc_status find_local_fault(Engine& engine, QueuePair& qp, const SendRequest& request,
                               const DatagramTarget& target) {
  if (request.length > mtu_bytes(engine.port(target.address.port).active_mtu)) return IBV_WC_LOC_LEN_ERR;
  if ((request.flags & IBV_SEND_INLINE) != 0) return IBV_WC_SUCCESS;
  return allowed(engine.regions, qp.sends.pieces(qp.sends.head()), qp.settings.domain, false) ? IBV_WC_SUCCESS
                                                                                              : IBV_WC_LOC_PROT_ERR;
}

ibv_grh route_header(const PacketHeader& header, const DatagramHeader& datagram) {
  ibv_grh grh{};
  constexpr std::uint32_t version = 6;
  grh.version_tclass_flow =
      htonl(version << 28 | static_cast<std::uint32_t>(header.traffic_class) << 20 | datagram.flow_label);
  grh.paylen = htons(static_cast<std::uint16_t>(header.payload_bytes));
  grh.next_hdr = 0x1b;  // an InfiniBand transport header follows (specification, volume 1, 8.3)
  grh.hop_limit = header.hop_limit();
  grh.sgid = datagram.source_gid;
  grh.dgid = datagram.destination_gid;
  return grh;
}

}  // namespace

void transmit(Engine& engine, QueuePair& qp) {
  while (qp.state == IBV_QPS_RTS && !qp.sends.empty()) {
    const std::uint32_t position = qp.sends.head();
    const SendRequest& request = qp.sends.at(position);
    const DatagramTarget& target = qp.sends.target(position);
    const ibv_wc_status fault = find_local_fault(engine, qp, request, target);
    if (fault != IBV_WC_SUCCESS) return engine.fail_send(qp, fault);
    Packet packet;
    packet.header.kind = PacketKind::send;
    packet.header.flags = packet_flag::first | packet_flag::last;
    packet.header.packet_count = 1;
    packet.header.destination_qpn = target.qpn & Qpn::mask;
    packet.header.source = source_of(qp);
    packet.header.sequence = qp.requester.next_psn.value();
    packet.header.acknowledgement = 0;
    packet.header.payload_bytes = request.length;
    packet.header.immediate = request.immediate;
    if (request.opcode == IBV_WR_SEND_WITH_IMM) packet.header.flags |= packet_flag::immediate;
    if ((request.flags & IBV_SEND_SOLICITED) != 0) packet.header.flags |= packet_flag::solicited;
    packet.datagram = {target.qkey, target.address.flow_label, target.address.source_gid,
                       target.address.destination_gid};
    if (!engine.transmit(qp, target.address, packet, qp.sends.pieces(position))) return engine.owe(qp);
    qp.requester.next_psn = qp.requester.next_psn.next();
    if (qp.state == IBV_QPS_RTS) engine.complete_send(qp, IBV_WC_SUCCESS);
  }
}

void on_packet(Engine& engine, QueuePair& qp, const InboundPacket& inbound) {
  const PacketHeader& header = inbound.packet.header;
  if (!qp.executes_requests()) {
    ++engine.counters.dropped;
    return;
  }
  if (inbound.packet.datagram.qkey != qp.attributes.qkey) {
    ++engine.counters.bad_qkeys;
    return;
  }
  Responder& self = qp.responder;
  if (!self.receive_taken) self.receive_taken = engine.take_receive(qp, self.receive);
  const std::uint64_t needed = std::uint64_t{header.payload_bytes} + grh_bytes;
  if (!self.receive_taken || needed > self.receive.length) {
    ++engine.counters.dropped;  // lost, as datagrams are; the receive waits for another
    return;
  }
  const PieceRange all(self.receive.pieces, 0, needed);
  if (!allowed(engine.regions, all.pieces(), qp.settings.domain, true)) {
    self.receive_taken = false;
    engine.complete_receive(qp, self.receive, {.status = IBV_WC_LOC_PROT_ERR}, true);
    return engine.enter_error(qp);
  }
  const PieceRange payload(self.receive.pieces, grh_bytes, header.payload_bytes);
  if (header.payload_bytes > 0 && !engine.wire().fetch(inbound, 0, payload.pieces())) {
    ++engine.counters.dropped;
    return;
  }
  const ibv_grh grh = route_header(header, inbound.packet.datagram);
  static_assert(sizeof(grh) == grh_bytes);
  scatter(PieceRange(self.receive.pieces, 0, grh_bytes).pieces(), reinterpret_cast<const std::byte*>(&grh));
  Received received{.bytes = static_cast<std::uint32_t>(needed),
                    .flags = IBV_WC_GRH,
                    .source = header.source_qpn(),
                    .service_level = header.service_level};
  if (header.has(packet_flag::immediate)) {
    received.flags |= IBV_WC_WITH_IMM;
    received.immediate = header.immediate;
  }
  self.receive_taken = false;
  engine.complete_receive(qp, self.receive, received, header.has(packet_flag::solicited));
}

}  // namespace verbatim::soft::datagram
