#include "endpoint.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/system_random.hpp"

namespace verbatim::pingpong {
namespace {

// Both queue pairs' sends and receives.
constexpr int completion_queue_depth = 4 * queue_depth;

[[noreturn]] void refuse(const char* verb, int error) {
  throw Error(ErrorCode::device_failure,
              fmt::format("the device refused {}: {} (errno {}); verbatim-info shows its limits and state", verb,
                          std::strerror(error), error));
}

// Throws with the verb's name where it failed.
template <typename Object>
Object* made(Object* object, const char* verb) {
  if (object == nullptr) refuse(verb, errno);
  return object;
}

void done(int result, const char* verb) {
  if (result != 0) refuse(verb, result);
}

std::uint32_t random_psn() {
  return static_cast<std::uint32_t>(Random(system_seed()).below(1U << 24));
}

}  // namespace

Endpoint::Endpoint(std::unique_ptr<device::Context> context, const device::Selection& selection)
    : context_(std::move(context)), selection_(selection) {
  constexpr int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  memory_ = context_->allocate(buffer_bytes);
  if (!memory_)
    throw Error(ErrorCode::no_space,
                fmt::format("a buffer of {} bytes was refused: {}", buffer_bytes, std::strerror(errno)));
  make_domains();
  mr_ = made(context_->reg_mr(pd_, memory_.address, memory_.bytes, access), "ibv_reg_mr");
  make_completion_queue();
  make_queue_pairs();
}

void Endpoint::make_domains() {
  pd_ = made(context_->alloc_pd(), "ibv_alloc_pd");
  parent_domain_ = pd_;
  ibv_td_init_attr thread_domain{};
  thread_domain_ = context_->alloc_td(thread_domain);
  if (thread_domain_ == nullptr) return;
  ibv_parent_domain_init_attr parent{};
  parent.pd = pd_;
  parent.td = thread_domain_;
  parent_domain_ = made(context_->alloc_parent_domain(parent), "ibv_alloc_parent_domain");
}

void Endpoint::make_completion_queue() {
  if (thread_domain_ == nullptr) {
    cq_ = made(context_->create_cq(completion_queue_depth, nullptr, nullptr, 0), "ibv_create_cq");
    return;
  }
  ibv_cq_init_attr_ex init{};
  init.cqe = completion_queue_depth;
  init.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  init.parent_domain = parent_domain_;
  cq_ = ibv_cq_ex_to_cq(made(context_->create_cq_ex(init), "ibv_create_cq_ex"));
}

Endpoint::~Endpoint() {
  if (handle_ != nullptr) context_->destroy_ah(handle_);
  if (ud_ != nullptr) context_->destroy_qp(ud_);
  if (rc_ != nullptr) context_->destroy_qp(rc_);
  if (cq_ != nullptr) context_->destroy_cq(cq_);
  if (mr_ != nullptr) context_->dereg_mr(mr_);
  if (parent_domain_ != nullptr && parent_domain_ != pd_) context_->dealloc_pd(parent_domain_);
  if (thread_domain_ != nullptr) context_->dealloc_td(thread_domain_);
  if (pd_ != nullptr) context_->dealloc_pd(pd_);
  context_->release(memory_);
}

void Endpoint::make_queue_pairs() {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.cap = {.max_send_wr = queue_depth,
              .max_recv_wr = queue_depth,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 64};
  init.qp_type = IBV_QPT_RC;
  rc_ = made(context_->create_qp(parent_domain_, init), "ibv_create_qp (RC)");
  init.qp_type = IBV_QPT_UD;
  ud_ = made(context_->create_qp(parent_domain_, init), "ibv_create_qp (UD)");
  for (ibv_qp* qp : {rc_, ud_}) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = selection_.port.value;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    attributes.qkey = qkey;
    const int kind = qp == rc_ ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY;
    done(context_->modify_qp(qp, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | kind),
         "ibv_modify_qp (INIT)");
  }
}

// The GID at the chosen index as this context has it: each context of the soft device is an instance with its own.
ibv_gid Endpoint::own_gid() {
  std::vector<ibv_gid_entry> entries;
  done(context_->query_gid_table(entries), "ibv_query_gid_table");
  for (const ibv_gid_entry& entry : entries) {
    if (entry.port_num == selection_.port.value && entry.gid_index == selection_.gid.entry.index) return entry.gid;
  }
  throw Error(ErrorCode::not_found,
              fmt::format("{}: GID index {} is gone", selection_.device, selection_.gid.entry.index));
}

SideAddress Endpoint::address() {
  return {.gid = own_gid(),
          .rc = {rc_->qp_num, random_psn()},
          .ud = {ud_->qp_num, random_psn()},
          .buffer = reinterpret_cast<std::uint64_t>(memory_.address),
          .rkey = mr_->rkey};
}

ibv_ah_attr Endpoint::way_to(const SideAddress& peer) const {
  constexpr std::uint8_t hop_limit = 64;
  ibv_ah_attr way{};
  way.is_global = 1;
  way.port_num = selection_.port.value;
  way.grh.dgid = peer.gid;
  way.grh.sgid_index = static_cast<std::uint8_t>(selection_.gid.entry.index);
  way.grh.hop_limit = hop_limit;
  return way;
}

void Endpoint::connect(const SideAddress& peer, const SideAddress& own) {
  ibv_port_attr port{};
  done(context_->query_port(selection_.port.value, port), "ibv_query_port");
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = port.active_mtu;
  attributes.dest_qp_num = peer.rc.qpn;
  attributes.rq_psn = peer.rc.psn;
  attributes.min_rnr_timer = 12;  // 0.64 ms
  attributes.ah_attr = way_to(peer);
  done(context_->modify_qp(rc_, attributes,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
       "ibv_modify_qp (RC to RTR)");
  done(context_->modify_qp(ud_, attributes, IBV_QP_STATE), "ibv_modify_qp (UD to RTR)");
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;  // 67 ms
  attributes.retry_cnt = 7;
  attributes.rnr_retry = 6;
  attributes.sq_psn = own.rc.psn;
  done(context_->modify_qp(rc_, attributes,
                           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_MAX_QP_RD_ATOMIC),
       "ibv_modify_qp (RC to RTS)");
  attributes.sq_psn = own.ud.psn;
  done(context_->modify_qp(ud_, attributes, IBV_QP_STATE | IBV_QP_SQ_PSN), "ibv_modify_qp (UD to RTS)");
  ibv_ah_attr way = way_to(peer);
  handle_ = made(context_->create_ah(pd_, way), "ibv_create_ah");
}

}  // namespace verbatim::pingpong
