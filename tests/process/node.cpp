#include "process/node.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/monotonic_clock.hpp"
#include "device/soft/provider.hpp"

namespace verbatim::process {
namespace {

constexpr int every_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

void done(int result, const char* verb) {
  require(result == 0, fmt::format("{}: {}", verb, std::strerror(result)));
}

template <typename Object>
Object* made(Object* object, const char* verb) {
  require(object != nullptr, fmt::format("{}: {}", verb, std::strerror(errno)));
  return object;
}

}  // namespace

void require(bool holds, std::string_view what) {
  if (!holds) throw std::runtime_error(std::string(what));
}

Time now() {
  return MonotonicClock().now();
}

Node::Node(const NodeOptions& options)
    : options_(options), context_(soft::make_provider(options.device)->open(options.device.name)) {
  if (options_.mappable) {
    memory_ = context_->allocate(options_.bytes);
    require(static_cast<bool>(memory_), fmt::format("allocate: {}", std::strerror(errno)));
  } else {
    own_memory_.resize(options_.bytes);
    memory_ = {own_memory_.data(), own_memory_.size()};
  }
  pd_ = made(context_->alloc_pd(), "alloc_pd");
  mr_ = made(context_->reg_mr(pd_, memory_.address, memory_.bytes, every_access), "reg_mr");
  if (options_.events) channel_ = made(context_->create_comp_channel(), "create_comp_channel");
  cq_ = made(context_->create_cq(static_cast<int>(2 * options_.depth * options_.queue_pairs), nullptr, channel_, 0),
             "create_cq");
  for (unsigned i = 0; i < options_.queue_pairs; ++i) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = options_.depth,
                .max_recv_wr = options_.depth,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    queue_pairs_.push_back(made(context_->create_qp(pd_, init), "create_qp"));
    to_init(queue_pairs_.back());
  }
}

Node::~Node() {
  for (ibv_qp* qp : queue_pairs_) context_->destroy_qp(qp);
  if (cq_ != nullptr) context_->destroy_cq(cq_);
  if (channel_ != nullptr) context_->destroy_comp_channel(channel_);
  if (mr_ != nullptr) context_->dereg_mr(mr_);
  if (pd_ != nullptr) context_->dealloc_pd(pd_);
  if (options_.mappable) context_->release(memory_);
}

void Node::to_init(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = every_access;
  done(context_->modify_qp(qp, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
       "modify_qp (INIT)");
}

Address Node::address(unsigned index) {
  std::vector<ibv_gid_entry> entries;
  done(context_->query_gid_table(entries), "query_gid_table");
  return {.gid = entries.at(0).gid,
          .qpn = queue_pairs_[index]->qp_num,
          .rkey = mr_->rkey,
          .memory = reinterpret_cast<std::uint64_t>(memory_.address)};
}

void Node::connect(const Address& peer, unsigned index) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_4096;
  attributes.dest_qp_num = peer.qpn;
  attributes.rq_psn = first_psn;
  attributes.max_dest_rd_atomic = 8;
  attributes.min_rnr_timer = 1;  // 10 us
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.dgid = peer.gid;
  attributes.ah_attr.grh.hop_limit = 64;
  ibv_qp* qp = queue_pairs_[index];
  done(context_->modify_qp(qp, attributes,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
       "modify_qp (RTR)");
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = first_psn;
  attributes.timeout = options_.timeout;
  attributes.retry_cnt = options_.retry_count;
  attributes.rnr_retry = options_.rnr_retry;
  attributes.max_rd_atomic = 8;
  done(context_->modify_qp(qp, attributes,
                           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_MAX_QP_RD_ATOMIC),
       "modify_qp (RTS)");
}

void Node::recycle(unsigned index) {
  for (const ibv_qp_state state : {IBV_QPS_ERR, IBV_QPS_RESET}) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    done(context_->modify_qp(queue_pairs_[index], attributes, IBV_QP_STATE), "modify_qp (ERR, RESET)");
  }
  to_init(queue_pairs_[index]);
}

int Node::post(ibv_send_wr& wr, std::size_t offset, std::uint32_t length, unsigned index) {
  ibv_sge piece{reinterpret_cast<std::uint64_t>(memory() + offset), length, mr_->lkey};
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(queue_pairs_[index], &wr, &bad);
}

int Node::send(std::uint64_t id, std::size_t offset, std::uint32_t length, unsigned index) {
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.opcode = IBV_WR_SEND;
  return post(wr, offset, length, index);
}

int Node::receive(std::uint64_t id, std::size_t offset, std::uint32_t length, unsigned index) {
  ibv_sge piece{reinterpret_cast<std::uint64_t>(memory() + offset), length, mr_->lkey};
  ibv_recv_wr wr{.wr_id = id, .next = nullptr, .sg_list = &piece, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(queue_pairs_[index], &wr, &bad);
}

int Node::write(std::uint64_t id, std::size_t offset, std::uint32_t length, const Address& peer,
                std::size_t peer_offset, unsigned index) {
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma = {peer.memory + peer_offset, peer.rkey};
  return post(wr, offset, length, index);
}

int Node::read(std::uint64_t id, std::size_t offset, std::uint32_t length, const Address& peer, std::size_t peer_offset,
               unsigned index) {
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.opcode = IBV_WR_RDMA_READ;
  wr.wr.rdma = {peer.memory + peer_offset, peer.rkey};
  return post(wr, offset, length, index);
}

int Node::fetch_add(std::uint64_t id, std::size_t offset, std::uint64_t add, const Address& peer,
                    std::size_t peer_offset, unsigned index) {
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.atomic = {.remote_addr = peer.memory + peer_offset, .compare_add = add, .swap = 0, .rkey = peer.rkey};
  return post(wr, offset, sizeof(std::uint64_t), index);
}

std::optional<ibv_wc> Node::poll() {
  ibv_wc wc{};
  const int count = ibv_poll_cq(cq_, 1, &wc);
  require(count >= 0, "ibv_poll_cq failed");
  if (count == 0) return std::nullopt;
  return wc;
}

ibv_wc Node::wait(Duration patience) {
  const Time deadline = now() + patience;
  for (;;) {
    if (const auto wc = poll()) return *wc;
    require(now() < deadline, "no completion came");
  }
}

void Node::finish(std::uint64_t id, Duration patience) {
  const ibv_wc wc = wait(patience);
  if (wc.status == IBV_WC_SUCCESS && wc.wr_id == id) return;
  require(false, fmt::format("request {} ended as {}, {} was awaited", wc.wr_id, ibv_wc_status_str(wc.status), id));
}

}  // namespace verbatim::process
