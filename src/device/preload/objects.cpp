// ibv_*: domains, memory, queues and addresses. Each means what its man page says; on a soft device it is the method of
// device::Context with the same name.
#include <infiniband/verbs.h>

#include "device/preload/real.hpp"
#include "device/preload/soft_devices.hpp"
#include "device/soft/verbs/soft_context.hpp"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

using verbatim::device::Context;
using verbatim::preload::soft_of;

namespace {

// How a call fails that a soft device doesn't offer.
template <typename Object>
Object* refuse() {
  errno = EOPNOTSUPP;
  return nullptr;
}

// Hints, which may be ignored (ibv_reg_mr(3)).
int without_hints(unsigned access) {
  return static_cast<int>(access & ~unsigned{IBV_ACCESS_OPTIONAL_RANGE});
}

}  // namespace

extern "C" {

// -- domains and memory ------------------------------------------------------------

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (Context* soft = soft_of(context)) return soft->alloc_pd();
  VERBATIM_CALL_REAL(ibv_alloc_pd, nullptr, context);
}

int ibv_dealloc_pd(ibv_pd* pd) {
  if (Context* soft = soft_of(pd->context)) return soft->dealloc_pd(pd);
  VERBATIM_CALL_REAL(ibv_dealloc_pd, errno, pd);
}

ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
  if (soft_of(context) != nullptr) return refuse<ibv_pd>();
  VERBATIM_CALL_REAL(ibv_import_pd, nullptr, context, handle);
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  if (Context* soft = soft_of(pd->context)) {
    return soft->reg_mr(pd, address, length, without_hints(static_cast<unsigned>(access)));
  }
  VERBATIM_CALL_REAL(ibv_reg_mr, nullptr, pd, address, length, access);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  if (Context* soft = soft_of(pd->context)) {
    if (iova != reinterpret_cast<std::uintptr_t>(address)) return refuse<ibv_mr>();
    return soft->reg_mr(pd, address, length, without_hints(access));
  }
  VERBATIM_CALL_REAL(ibv_reg_mr_iova2, nullptr, pd, address, length, iova, access);
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  return ibv_reg_mr_iova2(pd, address, length, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int descriptor,
                          int access) {
  if (soft_of(pd->context) != nullptr) return refuse<ibv_mr>();
  VERBATIM_CALL_REAL(ibv_reg_dmabuf_mr, nullptr, pd, offset, length, iova, descriptor, access);
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  if (soft_of(mr->context) != nullptr) {
    errno = verbatim::soft::SoftContext::of(mr->context).rereg_mr(mr, flags, pd, address, length, access);
    return errno == 0 ? 0 : IBV_REREG_MR_ERR_INPUT;
  }
  VERBATIM_CALL_REAL(ibv_rereg_mr, IBV_REREG_MR_ERR_INPUT, mr, flags, pd, address, length, access);
}

int ibv_dereg_mr(ibv_mr* mr) {
  if (Context* soft = soft_of(mr->context)) return soft->dereg_mr(mr);
  VERBATIM_CALL_REAL(ibv_dereg_mr, errno, mr);
}

ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
  if (soft_of(pd->context) != nullptr) return refuse<ibv_mr>();
  VERBATIM_CALL_REAL(ibv_import_mr, nullptr, pd, handle);
}

ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
  if (soft_of(context) != nullptr) return refuse<ibv_dm>();
  VERBATIM_CALL_REAL(ibv_import_dm, nullptr, context, handle);
}

// -- completion queues ------------------------------------------------------------

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel, int vector) {
  if (Context* soft = soft_of(context)) return soft->create_cq(entries, cq_context, channel, vector);
  VERBATIM_CALL_REAL(ibv_create_cq, nullptr, context, entries, cq_context, channel, vector);
}

int ibv_resize_cq(ibv_cq* cq, int entries) {
  if (Context* soft = soft_of(cq->context)) return soft->resize_cq(cq, entries);
  VERBATIM_CALL_REAL(ibv_resize_cq, errno, cq, entries);
}

int ibv_destroy_cq(ibv_cq* cq) {
  if (Context* soft = soft_of(cq->context)) return soft->destroy_cq(cq);
  VERBATIM_CALL_REAL(ibv_destroy_cq, errno, cq);
}

// -- shared receive queues ------------------------------------------------------------

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  if (Context* soft = soft_of(pd->context)) return soft->create_srq(pd, *attributes);
  VERBATIM_CALL_REAL(ibv_create_srq, nullptr, pd, attributes);
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  if (Context* soft = soft_of(srq->context)) return soft->modify_srq(srq, *attributes, mask);
  VERBATIM_CALL_REAL(ibv_modify_srq, errno, srq, attributes, mask);
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  if (Context* soft = soft_of(srq->context)) return soft->query_srq(srq, *attributes);
  VERBATIM_CALL_REAL(ibv_query_srq, errno, srq, attributes);
}

int ibv_destroy_srq(ibv_srq* srq) {
  if (Context* soft = soft_of(srq->context)) return soft->destroy_srq(srq);
  VERBATIM_CALL_REAL(ibv_destroy_srq, errno, srq);
}

// -- queue pairs ------------------------------------------------------------

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (Context* soft = soft_of(pd->context)) return soft->create_qp(pd, *attributes);
  VERBATIM_CALL_REAL(ibv_create_qp, nullptr, pd, attributes);
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  if (Context* soft = soft_of(qp->context)) return soft->qp_to_qp_ex(qp);
  VERBATIM_CALL_REAL(ibv_qp_to_qp_ex, nullptr, qp);
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if (Context* soft = soft_of(qp->context)) return soft->modify_qp(qp, *attributes, mask);
  VERBATIM_CALL_REAL(ibv_modify_qp, errno, qp, attributes, mask);
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* init) {
  if (Context* soft = soft_of(qp->context)) return soft->query_qp(qp, *attributes, mask, *init);
  VERBATIM_CALL_REAL(ibv_query_qp, errno, qp, attributes, mask, init);
}

int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags) {
  if (Context* soft = soft_of(qp->context)) return soft->data_in_order(qp, opcode) ? 1 : 0;
  VERBATIM_CALL_REAL(ibv_query_qp_data_in_order, 0, qp, opcode, flags);
}

int ibv_destroy_qp(ibv_qp* qp) {
  if (Context* soft = soft_of(qp->context)) return soft->destroy_qp(qp);
  VERBATIM_CALL_REAL(ibv_destroy_qp, errno, qp);
}

int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  if (soft_of(qp->context) != nullptr) return errno = EOPNOTSUPP;
  VERBATIM_CALL_REAL(ibv_set_ece, errno, qp, ece);
}

int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  if (soft_of(qp->context) != nullptr) return errno = EOPNOTSUPP;
  VERBATIM_CALL_REAL(ibv_query_ece, errno, qp, ece);
}

int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  if (Context* soft = soft_of(qp->context)) return soft->attach_mcast(qp, *gid, lid);
  VERBATIM_CALL_REAL(ibv_attach_mcast, errno, qp, gid, lid);
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  if (Context* soft = soft_of(qp->context)) return soft->detach_mcast(qp, *gid, lid);
  VERBATIM_CALL_REAL(ibv_detach_mcast, errno, qp, gid, lid);
}

// -- addresses ------------------------------------------------------------

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  if (Context* soft = soft_of(pd->context)) return soft->create_ah(pd, *attributes);
  VERBATIM_CALL_REAL(ibv_create_ah, nullptr, pd, attributes);
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* completion, ibv_grh* grh, std::uint8_t port) {
  if (Context* soft = soft_of(pd->context)) return soft->create_ah_from_wc(pd, *completion, grh, port);
  VERBATIM_CALL_REAL(ibv_create_ah_from_wc, nullptr, pd, completion, grh, port);
}

int ibv_destroy_ah(ibv_ah* ah) {
  if (Context* soft = soft_of(ah->context)) return soft->destroy_ah(ah);
  VERBATIM_CALL_REAL(ibv_destroy_ah, errno, ah);
}

}  // extern "C"
