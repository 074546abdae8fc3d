#include "device/ibverbs/context.hpp"

#include <endian.h>

#include <cerrno>

#include "device/ibverbs/counters.hpp"
#include "device/pages.hpp"

namespace verbatim::device {
namespace {

// The largest GID table that is read, entries of all ports together. Hardware has 256 per port.
constexpr std::size_t max_gid_entries = 65536;

}  // namespace

IbverbsContext::IbverbsContext(ibv_context* handle) : handle_(handle), name_(ibv_get_device_name(handle->device)) {}
IbverbsContext::~IbverbsContext() {
  ibv_close_device(handle_);
}

// -- what there is --

int IbverbsContext::query_device(ibv_device_attr_ex& attributes) {
  return ibv_query_device_ex(handle_, nullptr, &attributes);
}

int IbverbsContext::query_port(std::uint8_t port, ibv_port_attr& attributes) {
  return ibv_query_port(handle_, port, &attributes);
}

int IbverbsContext::query_gid_table(std::vector<ibv_gid_entry>& entries) {
  ibv_device_attr_ex device{};
  if (const int problem = query_device(device); problem != 0) return problem;
  std::size_t room = 0;
  for (int port = 1; port <= device.orig_attr.phys_port_cnt; ++port) {
    ibv_port_attr attributes{};
    if (const int problem = query_port(static_cast<std::uint8_t>(port), attributes); problem != 0) return problem;
    room += static_cast<std::size_t>(attributes.gid_tbl_len);
  }
  if (room > max_gid_entries) return EOVERFLOW;
  entries.resize(room);
  if (room == 0) return 0;
  const auto count = ibv_query_gid_table(handle_, entries.data(), room, 0);
  entries.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return count < 0 ? static_cast<int>(-count) : 0;
}

int IbverbsContext::query_pkey(std::uint8_t port, int index, std::uint16_t& pkey) {
  __be16 value = 0;
  errno = 0;
  if (ibv_query_pkey(handle_, port, index, &value) != 0) return errno != 0 ? errno : EINVAL;
  pkey = be16toh(value);
  return 0;
}

std::vector<Counter> IbverbsContext::counters(std::uint8_t port) {
  return read_counters("/sys", name_, port);
}

// -- protection and memory --

ibv_pd* IbverbsContext::alloc_pd() {
  return ibv_alloc_pd(handle_);
}
int IbverbsContext::dealloc_pd(ibv_pd* pd) {
  return ibv_dealloc_pd(pd);
}
ibv_td* IbverbsContext::alloc_td(ibv_td_init_attr& attributes) {
  return ibv_alloc_td(handle_, &attributes);
}
int IbverbsContext::dealloc_td(ibv_td* td) {
  return ibv_dealloc_td(td);
}
ibv_pd* IbverbsContext::alloc_parent_domain(ibv_parent_domain_init_attr& attributes) {
  return ibv_alloc_parent_domain(handle_, &attributes);
}
ibv_mr* IbverbsContext::reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return ibv_reg_mr(pd, address, length, access);
}
int IbverbsContext::dereg_mr(ibv_mr* mr) {
  return ibv_dereg_mr(mr);
}
ibv_mw* IbverbsContext::alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  return ibv_alloc_mw(pd, type);
}
int IbverbsContext::dealloc_mw(ibv_mw* mw) {
  return ibv_dealloc_mw(mw);
}

Memory IbverbsContext::allocate(std::size_t bytes) {
  return map_pages(bytes);
}

void IbverbsContext::release(Memory memory) {
  unmap_pages(memory);
}

// -- completions and events --

ibv_comp_channel* IbverbsContext::create_comp_channel() {
  return ibv_create_comp_channel(handle_);
}
int IbverbsContext::destroy_comp_channel(ibv_comp_channel* channel) {
  return ibv_destroy_comp_channel(channel);
}
ibv_cq* IbverbsContext::create_cq(int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) {
  return ibv_create_cq(handle_, cqe, cq_context, channel, comp_vector);
}
ibv_cq_ex* IbverbsContext::create_cq_ex(ibv_cq_init_attr_ex& attributes) {
  return ibv_create_cq_ex(handle_, &attributes);
}
int IbverbsContext::resize_cq(ibv_cq* cq, int cqe) {
  return ibv_resize_cq(cq, cqe);
}
int IbverbsContext::destroy_cq(ibv_cq* cq) {
  return ibv_destroy_cq(cq);
}
int IbverbsContext::get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  return ibv_get_cq_event(channel, cq, cq_context);
}
void IbverbsContext::ack_cq_events(ibv_cq* cq, unsigned int events) {
  ibv_ack_cq_events(cq, events);
}
int IbverbsContext::get_async_event(ibv_async_event& event) {
  return ibv_get_async_event(handle_, &event);
}
void IbverbsContext::ack_async_event(ibv_async_event& event) {
  ibv_ack_async_event(&event);
}

// -- queues --

ibv_srq* IbverbsContext::create_srq(ibv_pd* pd, ibv_srq_init_attr& attributes) {
  return ibv_create_srq(pd, &attributes);
}
int IbverbsContext::modify_srq(ibv_srq* srq, ibv_srq_attr& attributes, int mask) {
  return ibv_modify_srq(srq, &attributes, mask);
}
int IbverbsContext::query_srq(ibv_srq* srq, ibv_srq_attr& attributes) {
  return ibv_query_srq(srq, &attributes);
}
int IbverbsContext::destroy_srq(ibv_srq* srq) {
  return ibv_destroy_srq(srq);
}
ibv_qp* IbverbsContext::create_qp(ibv_pd* pd, ibv_qp_init_attr& attributes) {
  return ibv_create_qp(pd, &attributes);
}
ibv_qp* IbverbsContext::create_qp_ex(ibv_qp_init_attr_ex& attributes) {
  return ibv_create_qp_ex(handle_, &attributes);
}
ibv_qp_ex* IbverbsContext::qp_to_qp_ex(ibv_qp* qp) {
  return ibv_qp_to_qp_ex(qp);
}
int IbverbsContext::modify_qp(ibv_qp* qp, ibv_qp_attr& attributes, int mask) {
  return ibv_modify_qp(qp, &attributes, mask);
}
int IbverbsContext::query_qp(ibv_qp* qp, ibv_qp_attr& attributes, int mask, ibv_qp_init_attr& init) {
  return ibv_query_qp(qp, &attributes, mask, &init);
}
bool IbverbsContext::data_in_order(ibv_qp* qp, ibv_wr_opcode opcode) {
  return ibv_query_qp_data_in_order(qp, opcode, 0) != 0;
}
int IbverbsContext::destroy_qp(ibv_qp* qp) {
  return ibv_destroy_qp(qp);
}
ibv_ah* IbverbsContext::create_ah(ibv_pd* pd, ibv_ah_attr& attributes) {
  return ibv_create_ah(pd, &attributes);
}
ibv_ah* IbverbsContext::create_ah_from_wc(ibv_pd* pd, ibv_wc& wc, ibv_grh* grh, std::uint8_t port) {
  return ibv_create_ah_from_wc(pd, &wc, grh, port);
}
int IbverbsContext::destroy_ah(ibv_ah* ah) {
  return ibv_destroy_ah(ah);
}
int IbverbsContext::attach_mcast(ibv_qp* qp, const union ibv_gid& gid, std::uint16_t lid) {
  return ibv_attach_mcast(qp, &gid, lid);
}
int IbverbsContext::detach_mcast(ibv_qp* qp, const union ibv_gid& gid, std::uint16_t lid) {
  return ibv_detach_mcast(qp, &gid, lid);
}

}  // namespace verbatim::device
