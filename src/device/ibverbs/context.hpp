// A device opened through libibverbs: every call is that library's, which fails with EOPNOTSUPP where a device lacks
// it.
#pragma once

#include <string>

#include "device/context.hpp"

namespace verbatim::device {

class IbverbsContext final : public Context {
 public:
  // Takes over the handle, never null.
  explicit IbverbsContext(ibv_context* handle);
  ~IbverbsContext() override;

  [[nodiscard]] ibv_context* handle() const noexcept override { return handle_; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }

  int query_device(ibv_device_attr_ex& attributes) override;
  int query_port(std::uint8_t port, ibv_port_attr& attributes) override;
  int query_gid_table(std::vector<ibv_gid_entry>& entries) override;
  int query_pkey(std::uint8_t port, int index, std::uint16_t& pkey) override;
  [[nodiscard]] std::vector<Counter> counters(std::uint8_t port) override;

  ibv_pd* alloc_pd() override;
  int dealloc_pd(ibv_pd* pd) override;
  ibv_td* alloc_td(ibv_td_init_attr& attributes) override;
  int dealloc_td(ibv_td* td) override;
  ibv_pd* alloc_parent_domain(ibv_parent_domain_init_attr& attributes) override;
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) override;
  int dereg_mr(ibv_mr* mr) override;
  ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) override;
  int dealloc_mw(ibv_mw* mw) override;
  Memory allocate(std::size_t bytes) override;
  void release(Memory memory) override;

  ibv_comp_channel* create_comp_channel() override;
  int destroy_comp_channel(ibv_comp_channel* channel) override;
  ibv_cq* create_cq(int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) override;
  ibv_cq_ex* create_cq_ex(ibv_cq_init_attr_ex& attributes) override;
  int resize_cq(ibv_cq* cq, int cqe) override;
  int destroy_cq(ibv_cq* cq) override;
  int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) override;
  void ack_cq_events(ibv_cq* cq, unsigned int events) override;
  int get_async_event(ibv_async_event& event) override;
  void ack_async_event(ibv_async_event& event) override;

  ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr& attributes) override;
  int modify_srq(ibv_srq* srq, ibv_srq_attr& attributes, int mask) override;
  int query_srq(ibv_srq* srq, ibv_srq_attr& attributes) override;
  int destroy_srq(ibv_srq* srq) override;
  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr& attributes) override;
  ibv_qp* create_qp_ex(ibv_qp_init_attr_ex& attributes) override;
  [[nodiscard]] ibv_qp_ex* qp_to_qp_ex(ibv_qp* qp) override;
  int modify_qp(ibv_qp* qp, ibv_qp_attr& attributes, int mask) override;
  int query_qp(ibv_qp* qp, ibv_qp_attr& attributes, int mask, ibv_qp_init_attr& init) override;
  bool data_in_order(ibv_qp* qp, ibv_wr_opcode opcode) override;
  int destroy_qp(ibv_qp* qp) override;
  ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr& attributes) override;
  ibv_ah* create_ah_from_wc(ibv_pd* pd, ibv_wc& wc, ibv_grh* grh, std::uint8_t port) override;
  int destroy_ah(ibv_ah* ah) override;
  int attach_mcast(ibv_qp* qp, const union ibv_gid& gid, std::uint16_t lid) override;
  int detach_mcast(ibv_qp* qp, const union ibv_gid& gid, std::uint16_t lid) override;

 private:
  ibv_context* handle_;
  std::string name_;
};

}  // namespace verbatim::device
