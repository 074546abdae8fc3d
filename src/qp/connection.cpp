#include "qp/connection.hpp"

namespace verbatim::qp {
namespace {

Modification rtr_connected(const Peer& peer) {
  auto modification = to_state(IBV_QPS_RTR);
  modification.attributes.ah_attr = peer.path.address();
  modification.attributes.path_mtu = peer.path_mtu.code();
  modification.attributes.dest_qp_num = peer.number.value;
  modification.attributes.rq_psn = peer.first_expected.value();
  modification.mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  return modification;
}

Modification rts_from(Psn first_sent) {
  auto modification = to_state(IBV_QPS_RTS);
  modification.attributes.sq_psn = first_sent.value();
  modification.mask |= IBV_QP_SQ_PSN;
  return modification;
}

}  // namespace

ibv_ah_attr Path::address() const {
  ibv_ah_attr address{};
  address.port_num = port.value;
  address.dlid = destination_lid;
  address.src_path_bits = source_path_bits;
  address.sl = service_level;
  if (route) {
    address.is_global = 1;
    address.grh.dgid = route->destination;
    address.grh.sgid_index = route->source_gid_index;
    address.grh.flow_label = route->flow_label;
    address.grh.hop_limit = route->hop_limit;
    address.grh.traffic_class = route->traffic_class;
  }
  return address;
}

Modification to_init(PortNumber port, std::uint16_t pkey_index, unsigned access) {
  auto modification = to_state(IBV_QPS_INIT);
  modification.attributes.port_num = port.value;
  modification.attributes.pkey_index = pkey_index;
  modification.attributes.qp_access_flags = access;
  modification.mask |= IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
  return modification;
}

Modification to_init(const RcConnection& connection) {
  return to_init(connection.peer.path.port, connection.pkey_index, connection.access);
}

Modification to_rtr(const RcConnection& connection) {
  auto modification = rtr_connected(connection.peer);
  modification.attributes.max_dest_rd_atomic = connection.responder_resources;
  modification.attributes.min_rnr_timer = connection.rnr_timer.code();
  modification.mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  return modification;
}

Modification to_rts(const RcConnection& connection) {
  auto modification = rts_from(connection.peer.first_sent);
  modification.attributes.max_rd_atomic = connection.initiator_depth;
  modification.attributes.timeout = connection.ack_timeout.code();
  modification.attributes.retry_cnt = connection.retries.code();
  modification.attributes.rnr_retry = connection.rnr_retries.code();
  modification.mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  return modification;
}

Modification to_init(const UcConnection& connection) {
  return to_init(connection.peer.path.port, connection.pkey_index, connection.access);
}

Modification to_rtr(const UcConnection& connection) {
  return rtr_connected(connection.peer);
}

Modification to_rts(const UcConnection& connection) {
  return rts_from(connection.peer.first_sent);
}

Modification to_init(const UdSettings& settings) {
  auto modification = to_state(IBV_QPS_INIT);
  modification.attributes.port_num = settings.port.value;
  modification.attributes.pkey_index = settings.pkey_index;
  modification.attributes.qkey = settings.qkey;
  modification.mask |= IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY;
  return modification;
}

Modification to_rtr(const UdSettings&) {
  return to_state(IBV_QPS_RTR);
}

Modification to_rts(const UdSettings& settings) {
  return rts_from(settings.first_sent);
}

}  // namespace verbatim::qp
