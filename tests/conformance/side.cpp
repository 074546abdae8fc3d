#include "conformance/side.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace verbatim::conformance {

namespace {

constexpr int cq_size = 512;
constexpr std::uint8_t hop_limit = 64;

void require(int error, const char* what) {
  if (error != 0) throw std::runtime_error(fmt::format("{} failed: {} ({})", what, std::strerror(error), error));
}

template <class MadeObject>
MadeObject checked(MadeObject made, const char* what) {
  require(made.error, what);
  return made;
}

// RoCE v2 by an IPv4 address first; any other entry will do where there is none.
int preference(const ibv_gid_entry& entry) {
  const std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool version_2 = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
  const bool ipv4 = std::memcmp(entry.gid.raw, mapped, sizeof mapped) == 0;
  return (version_2 ? 2 : 0) + (ipv4 ? 1 : 0);
}

}  // namespace

Address address_of(Endpoint& endpoint) {
  const ibv_port_attr port = endpoint.query_port(port_number);
  std::vector<ibv_gid_entry> table = endpoint.query_gid_table();
  std::erase_if(table, [](const ibv_gid_entry& entry) { return entry.port_num != port_number; });
  const auto best = std::max_element(table.begin(), table.end(), [](const auto& left, const auto& right) {
    return preference(left) < preference(right);
  });
  Address address;
  address.lid = port.lid;
  address.global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  if (best != table.end()) {
    address.gid = best->gid;
    address.gid_index = static_cast<std::uint8_t>(best->gid_index);
  }
  return address;
}

ibv_ah_attr path(const Address& from, const Address& to) {
  ibv_ah_attr attributes{};
  attributes.port_num = port_number;
  attributes.dlid = to.lid;
  attributes.is_global = to.global ? 1 : 0;
  attributes.grh.dgid = to.gid;
  attributes.grh.sgid_index = from.gid_index;
  attributes.grh.hop_limit = hop_limit;
  return attributes;
}

Side::Side(Fabric& own_fabric, Endpoint& own_endpoint) : fabric(&own_fabric), endpoint(&own_endpoint) {
  endpoint->open();
  device_name = endpoint->name();
  device = endpoint->query_device();
  port = endpoint->query_port(port_number);
  address = address_of(*endpoint);
  pd = checked(endpoint->alloc_pd(), "alloc_pd").object;
  send_cq = checked(endpoint->create_cq({.entries = cq_size, .channel = {}}), "create_cq").object;
  recv_cq = checked(endpoint->create_cq({.entries = cq_size, .channel = {}}), "create_cq").object;
}

QpOptions Side::qp_options(ibv_qp_type qp_type) const {
  QpOptions options;
  options.type = qp_type;
  options.cap.max_send_wr = 64;
  options.cap.max_recv_wr = 64;
  options.cap.max_send_sge = 4;
  options.cap.max_recv_sge = 4;
  options.cap.max_inline_data = 64;
  return options;
}

void Side::make_qp(QpOptions options) {
  if (!options.pd) options.pd = pd;
  if (!options.send_cq) options.send_cq = send_cq;
  if (!options.recv_cq) options.recv_cq = recv_cq;
  const MadeQp made = checked(endpoint->create_qp(options), "create_qp");
  qp = made.qp;
  qpn = made.number;
  cap = made.cap;
  type = options.type;
  extended = made.extended;
}

void Side::make_region(std::size_t bytes, int access, MemoryKind kind) {
  const MadeBuffer memory = checked(endpoint->allocate(bytes, kind), "allocate");
  const MadeMr region = checked(endpoint->reg_mr(pd, memory.buffer, 0, bytes, access), "reg_mr");
  buffer = memory.buffer;
  address_in_memory = memory.address;
  mr = region.mr;
  lkey = region.lkey;
  rkey = region.rkey;
}

void Side::to_init(const Route& route) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port_number;
  attributes.qp_access_flags = route.access;
  attributes.qkey = route.qkey;
  const int last = type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  require(endpoint->modify_qp(qp, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last),
          "modify_qp to INIT");
}

void Side::to_rtr(const Side& peer, const Route& route) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = route.mtu;
  attributes.dest_qp_num = peer.qpn;
  attributes.rq_psn = route.receive_psn;
  attributes.ah_attr = path(address, peer.address);
  attributes.max_dest_rd_atomic = route.reads_in;
  attributes.min_rnr_timer = route.rnr_timer;
  int mask = IBV_QP_STATE;
  if (type != IBV_QPT_UD) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (type == IBV_QPT_RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  require(endpoint->modify_qp(qp, attributes, mask), "modify_qp to RTR");
}

void Side::to_rts(const Route& route) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = route.send_psn;
  attributes.timeout = route.ack_timeout;
  attributes.retry_cnt = route.retries;
  attributes.rnr_retry = route.rnr_retries;
  attributes.max_rd_atomic = route.reads_out;
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (type == IBV_QPT_RC) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  require(endpoint->modify_qp(qp, attributes, mask), "modify_qp to RTS");
}

void Side::connect(const Side& peer, const Route& route) {
  to_init(route);
  to_rtr(peer, route);
  to_rts(route);
}

void Side::to(ibv_qp_state state) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  require(endpoint->modify_qp(qp, attributes, IBV_QP_STATE), "modify_qp");
}

ibv_qp_state Side::state() const {
  const QueriedQp queried = checked(endpoint->query_qp(qp, IBV_QP_STATE), "query_qp");
  return queried.attributes.qp_state;
}

bool Side::wait_for_state(ibv_qp_state wanted) const {
  return fabric->wait_until([&] { return state() == wanted; }, patience);
}

ibv_sge Side::piece(std::size_t offset, std::uint32_t bytes) const {
  return {.addr = at(offset), .length = bytes, .lkey = lkey};
}

void Side::fill(std::size_t offset, std::size_t bytes, std::uint32_t seed) const {
  endpoint->fill(buffer, offset, bytes, seed);
}

void Side::clear(std::size_t offset, std::size_t bytes) const {
  endpoint->write(buffer, offset, std::vector<std::uint8_t>(bytes));
}

std::optional<std::size_t> Side::first_difference(std::size_t offset, std::size_t bytes, std::uint32_t seed) const {
  return endpoint->first_difference(buffer, offset, bytes, seed);
}

std::uint64_t Side::word(std::size_t offset) const {
  const std::vector<std::uint8_t> bytes = endpoint->read(buffer, offset, sizeof(std::uint64_t));
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

void Side::set_word(std::size_t offset, std::uint64_t value) const {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
  endpoint->write(buffer, offset, {bytes, bytes + sizeof value});
}

void Side::post(const SendRequest& request) const {
  post(std::vector<SendRequest>{request});
}

void Side::post(const std::vector<SendRequest>& requests) const {
  require(endpoint->post_send(qp, requests).error, "post_send");
}

void Side::receive(std::uint64_t id, const std::vector<ibv_sge>& pieces) const {
  require(endpoint->post_recv(qp, {{.id = id, .pieces = pieces}}).error, "post_recv");
}

std::vector<ibv_wc> Side::completions(Cq cq, std::size_t count) const {
  std::vector<ibv_wc> all;
  const bool came = fabric->wait_until(
      [&] {
        const Polled polled = endpoint->poll_cq(cq, static_cast<int>(count - all.size()));
        if (polled.result < 0) throw std::runtime_error(fmt::format("poll_cq returned {}", polled.result));
        all.insert(all.end(), polled.completions.begin(), polled.completions.end());
        return all.size() == count;
      },
      patience);
  if (!came) throw std::runtime_error(fmt::format("{} of {} completions came", all.size(), count));
  return all;
}

bool Side::idle(Cq cq) const {
  return endpoint->poll_cq(cq, 1).result == 0;
}

std::optional<AsyncEvent> Side::async_event(ibv_event_type wanted, Duration wait) const {
  std::optional<AsyncEvent> event;
  const auto arrived = [&] {
    event = endpoint->get_async_event();
    return event && event->type == wanted;
  };
  if (!fabric->wait_until(arrived, wait)) return std::nullopt;
  return event;
}

SendRequest send(std::uint64_t id, std::vector<ibv_sge> pieces) {
  SendRequest request;
  request.id = id;
  request.pieces = std::move(pieces);
  return request;
}

SendRequest send_with_immediate(std::uint64_t id, std::vector<ibv_sge> pieces, std::uint32_t immediate) {
  SendRequest request = send(id, std::move(pieces));
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.immediate = immediate;
  return request;
}

SendRequest write(std::uint64_t id, std::vector<ibv_sge> pieces, const Side& target, std::size_t offset) {
  SendRequest request = send(id, std::move(pieces));
  request.opcode = IBV_WR_RDMA_WRITE;
  request.remote_address = target.at(offset);
  request.rkey = target.rkey;
  return request;
}

SendRequest write_with_immediate(std::uint64_t id, std::vector<ibv_sge> pieces, const Side& target, std::size_t offset,
                                 std::uint32_t immediate) {
  SendRequest request = write(id, std::move(pieces), target, offset);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.immediate = immediate;
  return request;
}

SendRequest read(std::uint64_t id, std::vector<ibv_sge> pieces, const Side& target, std::size_t offset) {
  SendRequest request = write(id, std::move(pieces), target, offset);
  request.opcode = IBV_WR_RDMA_READ;
  return request;
}

SendRequest compare_and_swap(std::uint64_t id, const ibv_sge& piece, const Side& target, std::size_t offset,
                             std::uint64_t compare, std::uint64_t swap) {
  SendRequest request = write(id, {piece}, target, offset);
  request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  request.compare_add = compare;
  request.swap = swap;
  return request;
}

SendRequest fetch_and_add(std::uint64_t id, const ibv_sge& piece, const Side& target, std::size_t offset,
                          std::uint64_t add) {
  SendRequest request = write(id, {piece}, target, offset);
  request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.compare_add = add;
  return request;
}

SendRequest datagram(std::uint64_t id, std::vector<ibv_sge> pieces, Ah ah, std::uint32_t qpn, std::uint32_t qkey) {
  SendRequest request = send(id, std::move(pieces));
  request.ah = ah;
  request.remote_qpn = qpn;
  request.remote_qkey = qkey;
  return request;
}

SendRequest with_flags(SendRequest request, unsigned flags) {
  request.flags = flags;
  return request;
}

}  // namespace verbatim::conformance
