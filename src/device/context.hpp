// The control path of one opened device. The data path needs nothing from here: it calls verbs' own inline functions
// (ibv_post_send, ibv_poll_cq, ibv_req_notify_cq, ibv_wr_*, …), which go through pointers inside the objects below.
//
// Every call means what the man page of the verb with the same name says (ibv_create_qp(3), …), including how it fails:
// pointers are nullptr with errno set, integers are 0 or an errno value. Objects are genuine verbs objects and belong
// to the caller, who destroys them through the same Context, children before parents.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace verbatim::device {

// Memory that the device and its peers reach by the shortest way. Owned by whoever asked for it.
struct Memory {
  void* address = nullptr;
  std::size_t bytes = 0;
  explicit operator bool() const noexcept { return address != nullptr; }
};

// One named count kept by the device ("rnr_nak_sent", "retransmits", …).
struct Counter {
  std::string name;
  std::uint64_t value = 0;
};

class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  virtual ~Context() = default;  // closes the device; every object made in it must be gone

  [[nodiscard]] virtual ibv_context* handle() const noexcept = 0;
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;

  // -- what there is ---------------------------------------------------------------------------------------------
  virtual int query_device(ibv_device_attr_ex& attributes) = 0;
  virtual int query_port(std::uint8_t port, ibv_port_attr& attributes) = 0;
  // Every non-empty entry of every port, with type and network device.
  virtual int query_gid_table(std::vector<ibv_gid_entry>& entries) = 0;
  // Host byte order, unlike ibv_query_pkey.
  virtual int query_pkey(std::uint8_t port, int index, std::uint16_t& pkey) = 0;
  // The device's own counts: hw_counters of the kernel, or the soft device's.
  [[nodiscard]] virtual std::vector<Counter> counters(std::uint8_t port) = 0;

  // -- protection and memory -------------------------------------------------------------------------------------
  virtual ibv_pd* alloc_pd() = 0;
  virtual int dealloc_pd(ibv_pd* pd) = 0;
  virtual ibv_td* alloc_td(ibv_td_init_attr& attributes) = 0;
  virtual int dealloc_td(ibv_td* td) = 0;
  virtual ibv_pd* alloc_parent_domain(ibv_parent_domain_init_attr& attributes) = 0;
  virtual ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) = 0;
  virtual int dereg_mr(ibv_mr* mr) = 0;
  virtual ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) = 0;
  virtual int dealloc_mw(ibv_mw* mw) = 0;
  // Page-aligned, page-rounded, zeroed, not yet registered. On hardware it is ordinary memory; on the soft device it
  // is memory that other processes can map, so that one-sided work on it is a plain copy. Empty with errno on failure.
  virtual Memory allocate(std::size_t bytes) = 0;
  virtual void release(Memory memory) = 0;

  // -- completions and events ------------------------------------------------------------------------------------
  virtual ibv_comp_channel* create_comp_channel() = 0;
  virtual int destroy_comp_channel(ibv_comp_channel* channel) = 0;
  virtual ibv_cq* create_cq(int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) = 0;
  virtual ibv_cq_ex* create_cq_ex(ibv_cq_init_attr_ex& attributes) = 0;
  virtual int resize_cq(ibv_cq* cq, int cqe) = 0;
  virtual int destroy_cq(ibv_cq* cq) = 0;
  // Blocks unless channel->fd was made O_NONBLOCK (then -1 with EAGAIN); as ibv_get_cq_event(3).
  virtual int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) = 0;
  virtual void ack_cq_events(ibv_cq* cq, unsigned int events) = 0;
  // Blocks unless handle()->async_fd was made O_NONBLOCK; as ibv_get_async_event(3).
  virtual int get_async_event(ibv_async_event& event) = 0;
  virtual void ack_async_event(ibv_async_event& event) = 0;

  // -- queues ----------------------------------------------------------------------------------------------------
  virtual ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr& attributes) = 0;
  virtual int modify_srq(ibv_srq* srq, ibv_srq_attr& attributes, int mask) = 0;
  virtual int query_srq(ibv_srq* srq, ibv_srq_attr& attributes) = 0;
  virtual int destroy_srq(ibv_srq* srq) = 0;
  virtual ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr& attributes) = 0;
  virtual ibv_qp* create_qp_ex(ibv_qp_init_attr_ex& attributes) = 0;
  [[nodiscard]] virtual ibv_qp_ex* qp_to_qp_ex(ibv_qp* qp) = 0;
  virtual int modify_qp(ibv_qp* qp, ibv_qp_attr& attributes, int mask) = 0;
  virtual int query_qp(ibv_qp* qp, ibv_qp_attr& attributes, int mask, ibv_qp_init_attr& init) = 0;
  // As ibv_query_qp_data_in_order(3): whether RDMA-written bytes become visible in address order, so that memory can be
  // polled.
  virtual bool data_in_order(ibv_qp* qp, ibv_wr_opcode opcode) = 0;
  virtual int destroy_qp(ibv_qp* qp) = 0;
  virtual ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr& attributes) = 0;
  virtual ibv_ah* create_ah_from_wc(ibv_pd* pd, ibv_wc& wc, ibv_grh* grh, std::uint8_t port) = 0;
  virtual int destroy_ah(ibv_ah* ah) = 0;
  virtual int attach_mcast(ibv_qp* qp, const union ibv_gid& gid, std::uint16_t lid) = 0;
  virtual int detach_mcast(ibv_qp* qp, const union ibv_gid& gid, std::uint16_t lid) = 0;
};

}  // namespace verbatim::device
