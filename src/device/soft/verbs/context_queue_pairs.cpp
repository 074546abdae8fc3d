// SoftContext: queue pairs, shared receive queues and address handles.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "device/soft/engine/pieces.hpp"
#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft {
namespace {

constexpr std::uint64_t provided_send_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                            IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                            IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                            IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

}  // namespace

// -- queue pairs -----------------------------------------------------------------------------------------------------

ibv_qp* SoftContext::create_qp(ibv_pd* pd, ibv_qp_init_attr& attributes) {
  ibv_qp_init_attr_ex extended{};
  static_assert(offsetof(ibv_qp_init_attr, sq_sig_all) == offsetof(ibv_qp_init_attr_ex, sq_sig_all));
  std::memcpy(&extended, &attributes, sizeof(attributes));
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  ibv_qp* made = create_qp_ex(extended);
  if (made != nullptr) attributes.cap = extended.cap;
  return made;
}

ibv_qp* SoftContext::create_qp_ex(ibv_qp_init_attr_ex& attributes) {
  if (forked_) return fail<ibv_qp>(EPERM);
  const Limits& limits = config_.limits;
  constexpr std::uint32_t known_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  const bool extended = (attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if ((attributes.comp_mask & ~known_mask) != 0) return fail<ibv_qp>(EOPNOTSUPP);
  if (extended && (attributes.send_ops_flags & ~provided_send_ops) != 0) return fail<ibv_qp>(EOPNOTSUPP);
  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attributes.pd == nullptr) return fail<ibv_qp>(EINVAL);
  if (attributes.send_cq == nullptr || attributes.recv_cq == nullptr) return fail<ibv_qp>(EINVAL);
  if (attributes.qp_type != IBV_QPT_RC && attributes.qp_type != IBV_QPT_UC && attributes.qp_type != IBV_QPT_UD) {
    return fail<ibv_qp>(EOPNOTSUPP);
  }
  ibv_qp_cap& cap = attributes.cap;
  if (cap.max_send_wr > limits.max_qp_wr || cap.max_recv_wr > limits.max_qp_wr || cap.max_send_sge > limits.max_sge ||
      cap.max_recv_sge > limits.max_sge || cap.max_inline_data > limits.max_inline_data) {
    return fail<ibv_qp>(EINVAL);
  }
  // Inline data is one piece, so there is room for one whatever was asked for.
  cap.max_send_sge = std::max(cap.max_send_sge, 1U);
  cap.max_recv_sge = std::max(cap.max_recv_sge, 1U);
  const EngineVisit visit(lock_);
  auto* domain = static_cast<SoftDomain*>(attributes.pd);
  // Its own address is what events name it by, so the memory comes before the object.
  void* room = ::operator new (sizeof(SoftQueuePair), std::align_val_t{alignof(SoftQueuePair)});
  auto* made = new (room)
      SoftQueuePair({.type = attributes.qp_type,
                     .domain = domain->id,
                     .send_cq = &SoftQueue::of(attributes.send_cq).queue,
                     .receive_cq = &SoftQueue::of(attributes.recv_cq).queue,
                     .srq = attributes.srq == nullptr ? nullptr : &SoftSharedReceiveQueue::of(attributes.srq).shared,
                     .cap = cap,
                     .signal_all = attributes.sq_sig_all != 0,
                     .owner = room},
                    events_mutex_);
  if (!engine_->add(made->engine_part)) {
    made->~SoftQueuePair();
    ::operator delete (room, std::align_val_t{alignof(SoftQueuePair)});
    return fail<ibv_qp>(ENOMEM);
  }
  ibv_qp& qp = made->qp_base;
  qp.context = handle();
  qp.qp_context = attributes.qp_context;
  qp.pd = attributes.pd;
  qp.send_cq = attributes.send_cq;
  qp.recv_cq = attributes.recv_cq;
  qp.srq = attributes.srq;
  qp.qp_num = qp.handle = made->engine_part.qpn.value;
  qp.state = IBV_QPS_RESET;
  qp.qp_type = attributes.qp_type;
  made->owner = this;
  made->thread_domain = domain->thread_domain;
  std::memcpy(&made->init, &attributes, sizeof(made->init));
  ++domain->users;
  if (extended) {
    made->staged = std::make_unique<StagedRequests>(cap);
    made->private_comp_mask = VerbsQueuePair::is_extended;
    fill_extended_send(*made);
  }
  object_made(made->thread_domain);
  return &qp;
}

ibv_qp_ex* SoftContext::qp_to_qp_ex(ibv_qp* qp) {
  SoftQueuePair& own = SoftQueuePair::of(qp);
  return own.staged != nullptr ? &own : nullptr;
}

int SoftContext::modify_qp(ibv_qp* qp, ibv_qp_attr& attributes, int mask) {
  if (forked_) return EPERM;
  SoftQueuePair& own = SoftQueuePair::of(qp);
  const EngineVisit visit(lock_);
  try {
    const int result = engine_->modify(own.engine_part, attributes, mask);
    qp->state = own.engine_part.state;
    return result;
  } catch (const Error& error) {
    // The wire has no way to the peer: errno can't say which bound was met, so the log does.
    log().warn("{}: queue pair {}: {}", config_.name, qp->qp_num, error.what());
    return error.code() == ErrorCode::no_space ? ENOSPC : EINVAL;
  }
}

int SoftContext::query_qp(ibv_qp* qp, ibv_qp_attr& attributes, int, ibv_qp_init_attr& init) {
  if (forked_) return EPERM;
  SoftQueuePair& own = SoftQueuePair::of(qp);
  const EngineVisit visit(lock_);
  engine_->query(own.engine_part, attributes);
  qp->state = own.engine_part.state;
  init = own.init;
  return 0;
}

// Bytes are copied in address order by one processor, and seen in that order where stores are not reordered.
bool SoftContext::data_in_order(ibv_qp*, ibv_wr_opcode opcode) {
#if defined(__x86_64__) || defined(__i386__)
  return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND;
#else
  (void)opcode;
  return false;
#endif
}

int SoftContext::destroy_qp(ibv_qp* qp) {
  SoftQueuePair& own = SoftQueuePair::of(qp);
  {
    const EngineVisit visit(lock_);
    // An earlier try may have got so far.
    if (engine_->find(own.engine_part.qpn) == &own.engine_part) engine_->remove(own.engine_part);
  }
  if (!settle_async_events(qp, own.async_events)) return EBUSY;
  const EngineVisit visit(lock_);
  --static_cast<SoftDomain*>(qp->pd)->users;
  object_gone(own.thread_domain);
  own.~SoftQueuePair();
  ::operator delete (&own, std::align_val_t{alignof(SoftQueuePair)});
  return 0;
}

// -- shared receive queues -------------------------------------------------------------------------------------------

ibv_srq* SoftContext::create_srq(ibv_pd* pd, ibv_srq_init_attr& attributes) {
  if (forked_) return fail<ibv_srq>(EPERM);
  const Limits& limits = config_.limits;
  if (attributes.attr.max_wr == 0 || attributes.attr.max_wr > limits.max_srq_wr ||
      attributes.attr.max_sge > limits.max_sge) {
    return fail<ibv_srq>(EINVAL);
  }
  const EngineVisit visit(lock_);
  if (srq_count_ >= limits.max_srq) return fail<ibv_srq>(ENOMEM);
  ++srq_count_;
  attributes.attr.max_sge = std::max(attributes.attr.max_sge, 1U);
  auto* domain = static_cast<SoftDomain*>(pd);
  auto* made = new SoftSharedReceiveQueue(attributes.attr.max_wr, attributes.attr.max_sge, events_mutex_);
  made->context = handle();
  made->srq_context = attributes.srq_context;
  made->pd = pd;
  made->owner = this;
  made->thread_domain = domain->thread_domain;
  made->shared.domain = domain->id;
  ++domain->users;
  object_made(made->thread_domain);
  return made;
}

int SoftContext::modify_srq(ibv_srq* srq, ibv_srq_attr& attributes, int mask) {
  if (forked_) return EPERM;
  const EngineVisit visit(lock_);
  SharedReceiveQueue& shared = SoftSharedReceiveQueue::of(srq).shared;
  if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
  if ((mask & IBV_SRQ_LIMIT) != 0) {
    if (attributes.srq_limit > shared.queue.capacity()) return EINVAL;
    shared.limit = attributes.srq_limit;
  }
  return 0;
}

int SoftContext::query_srq(ibv_srq* srq, ibv_srq_attr& attributes) {
  if (forked_) return EPERM;
  const EngineVisit visit(lock_);
  const SharedReceiveQueue& shared = SoftSharedReceiveQueue::of(srq).shared;
  attributes.max_wr = shared.queue.capacity();
  attributes.max_sge = shared.queue.max_pieces();
  attributes.srq_limit = shared.limit;
  return 0;
}

int SoftContext::destroy_srq(ibv_srq* srq) {
  SoftSharedReceiveQueue& own = SoftSharedReceiveQueue::of(srq);
  {
    const EngineVisit visit(lock_);
    if (own.shared.users > 0) return EBUSY;
  }
  if (!settle_async_events(srq, own.async_events)) return EBUSY;
  const EngineVisit visit(lock_);
  --srq_count_;
  --static_cast<SoftDomain*>(srq->pd)->users;
  object_gone(own.thread_domain);
  delete &own;
  return 0;
}

// -- address handles -------------------------------------------------------------------------------------------------

ibv_ah* SoftContext::create_ah(ibv_pd* pd, ibv_ah_attr& attributes) {
  if (forked_) return fail<ibv_ah>(EPERM);
  const EngineVisit visit(lock_);
  if (ah_count_ >= config_.limits.max_ah) return fail<ibv_ah>(ENOMEM);
  try {
    const auto address = engine_->resolve(attributes);
    if (!address) return fail<ibv_ah>(EINVAL);
    auto* made = new SoftAddressHandle{};
    made->context = handle();
    made->pd = pd;
    made->address = *address;
    ++ah_count_;
    ++static_cast<SoftDomain*>(pd)->users;
    return made;
  } catch (const Error& error) {
    log().warn("{}: address handle: {}", config_.name, error.what());
    return fail<ibv_ah>(error.code() == ErrorCode::no_space ? ENOSPC : EINVAL);
  }
}

ibv_ah* SoftContext::create_ah_from_wc(ibv_pd* pd, ibv_wc& wc, ibv_grh* grh, std::uint8_t number) {
  if ((wc.wc_flags & IBV_WC_GRH) == 0 || grh == nullptr) return fail<ibv_ah>(EINVAL);
  ibv_ah_attr attributes{};
  {
    const EngineVisit visit(lock_);
    if (number == 0 || number > engine_->port_count()) return fail<ibv_ah>(EINVAL);
    const auto& gids = engine_->port(number).gids;
    const auto own = std::find_if(gids.begin(), gids.end(), [&](const GidConfig& entry) {
      return std::memcmp(entry.gid.raw, grh->dgid.raw, sizeof(entry.gid.raw)) == 0;
    });
    if (own == gids.end()) return fail<ibv_ah>(EINVAL);
    attributes.grh.sgid_index = static_cast<std::uint8_t>(own - gids.begin());
  }
  const std::uint32_t flow = ntohl(grh->version_tclass_flow);
  constexpr std::uint8_t answer_hop_limit = 0xff;
  attributes.is_global = 1;
  attributes.grh.dgid = grh->sgid;
  attributes.grh.hop_limit = answer_hop_limit;
  attributes.grh.flow_label = flow & 0xfffff;
  attributes.grh.traffic_class = static_cast<std::uint8_t>(flow >> 20);
  attributes.sl = wc.sl;
  attributes.port_num = number;
  return create_ah(pd, attributes);
}

int SoftContext::destroy_ah(ibv_ah* ah) {
  const EngineVisit visit(lock_);
  --ah_count_;
  --static_cast<SoftDomain*>(ah->pd)->users;
  delete static_cast<SoftAddressHandle*>(ah);
  return 0;
}

int SoftContext::attach_mcast(ibv_qp*, const union ibv_gid&, std::uint16_t) {
  return EOPNOTSUPP;
}
int SoftContext::detach_mcast(ibv_qp*, const union ibv_gid&, std::uint16_t) {
  return EOPNOTSUPP;
}

}  // namespace verbatim::soft
