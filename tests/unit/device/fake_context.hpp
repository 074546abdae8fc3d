// A device that only answers questions: its answers are plain members for a test to set. Everything else is
// unsupported.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "device/context.hpp"
#include "device/provider.hpp"

namespace verbatim::device {

class FakeContext final : public Context {
 public:
  explicit FakeContext(std::string name) : name_(std::move(name)) {
    device_.transport_type = IBV_TRANSPORT_IB;
    context_.device = &device_;
    context_.async_fd = eventfd(0, EFD_SEMAPHORE);
  }
  ~FakeContext() override { close(context_.async_fd); }

  ibv_device_attr_ex attributes{};
  std::vector<ibv_port_attr> ports;
  std::vector<ibv_gid_entry> gids;
  std::map<std::uint8_t, std::vector<std::uint16_t>> pkeys;
  int query_device_result = 0;
  unsigned int acknowledged = 0;

  void raise(ibv_async_event event) {
    events_.push_back(event);
    eventfd_write(context_.async_fd, 1);
  }
  // The next read of an event fails with this errno.
  void fail_next_event(int problem) { event_problem_ = problem; }
  ibv_device& device() { return device_; }

  [[nodiscard]] ibv_context* handle() const noexcept override { return const_cast<ibv_context*>(&context_); }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  int query_device(ibv_device_attr_ex& answer) override {
    answer = attributes;
    return query_device_result;
  }
  int query_port(std::uint8_t port, ibv_port_attr& answer) override {
    if (port == 0 || port > ports.size()) return EINVAL;
    answer = ports[port - 1u];
    return 0;
  }
  int query_gid_table(std::vector<ibv_gid_entry>& answer) override {
    answer = gids;
    return 0;
  }
  int query_pkey(std::uint8_t port, int index, std::uint16_t& answer) override {
    answer = pkeys.at(port).at(static_cast<std::size_t>(index));
    return 0;
  }
  [[nodiscard]] std::vector<Counter> counters(std::uint8_t) override { return {}; }

  int get_async_event(ibv_async_event& event) override {
    if (event_problem_ != 0) {
      errno = std::exchange(event_problem_, 0);
      return -1;
    }
    eventfd_t ignored = 0;
    if (eventfd_read(context_.async_fd, &ignored) != 0) return -1;
    event = events_.front();
    events_.pop_front();
    return 0;
  }
  void ack_async_event(ibv_async_event&) override { ++acknowledged; }

  ibv_pd* alloc_pd() override { return unsupported(); }
  int dealloc_pd(ibv_pd*) override { return EOPNOTSUPP; }
  ibv_td* alloc_td(ibv_td_init_attr&) override { return unsupported(); }
  int dealloc_td(ibv_td*) override { return EOPNOTSUPP; }
  ibv_pd* alloc_parent_domain(ibv_parent_domain_init_attr&) override { return unsupported(); }
  ibv_mr* reg_mr(ibv_pd*, void*, std::size_t, int) override { return unsupported(); }
  int dereg_mr(ibv_mr*) override { return EOPNOTSUPP; }
  ibv_mw* alloc_mw(ibv_pd*, ibv_mw_type) override { return unsupported(); }
  int dealloc_mw(ibv_mw*) override { return EOPNOTSUPP; }
  Memory allocate(std::size_t) override { return {}; }
  void release(Memory) override {}
  ibv_comp_channel* create_comp_channel() override { return unsupported(); }
  int destroy_comp_channel(ibv_comp_channel*) override { return EOPNOTSUPP; }
  ibv_cq* create_cq(int, void*, ibv_comp_channel*, int) override { return unsupported(); }
  ibv_cq_ex* create_cq_ex(ibv_cq_init_attr_ex&) override { return unsupported(); }
  int resize_cq(ibv_cq*, int) override { return EOPNOTSUPP; }
  int destroy_cq(ibv_cq*) override { return EOPNOTSUPP; }
  int get_cq_event(ibv_comp_channel*, ibv_cq**, void**) override { return -1; }
  void ack_cq_events(ibv_cq*, unsigned int) override {}
  ibv_srq* create_srq(ibv_pd*, ibv_srq_init_attr&) override { return unsupported(); }
  int modify_srq(ibv_srq*, ibv_srq_attr&, int) override { return EOPNOTSUPP; }
  int query_srq(ibv_srq*, ibv_srq_attr&) override { return EOPNOTSUPP; }
  int destroy_srq(ibv_srq*) override { return EOPNOTSUPP; }
  ibv_qp* create_qp(ibv_pd*, ibv_qp_init_attr&) override { return unsupported(); }
  ibv_qp* create_qp_ex(ibv_qp_init_attr_ex&) override { return unsupported(); }
  [[nodiscard]] ibv_qp_ex* qp_to_qp_ex(ibv_qp*) override { return unsupported(); }
  int modify_qp(ibv_qp*, ibv_qp_attr&, int) override { return EOPNOTSUPP; }
  int query_qp(ibv_qp*, ibv_qp_attr&, int, ibv_qp_init_attr&) override { return EOPNOTSUPP; }
  bool data_in_order(ibv_qp*, ibv_wr_opcode) override { return false; }
  int destroy_qp(ibv_qp*) override { return EOPNOTSUPP; }
  ibv_ah* create_ah(ibv_pd*, ibv_ah_attr&) override { return unsupported(); }
  ibv_ah* create_ah_from_wc(ibv_pd*, ibv_wc&, ibv_grh*, std::uint8_t) override { return unsupported(); }
  int destroy_ah(ibv_ah*) override { return EOPNOTSUPP; }
  int attach_mcast(ibv_qp*, const union ibv_gid&, std::uint16_t) override { return EOPNOTSUPP; }
  int detach_mcast(ibv_qp*, const union ibv_gid&, std::uint16_t) override { return EOPNOTSUPP; }

 private:
  static std::nullptr_t unsupported() {
    errno = EOPNOTSUPP;
    return nullptr;
  }

  std::string name_;
  ibv_device device_{};
  ibv_context context_{};
  std::deque<ibv_async_event> events_;
  int event_problem_ = 0;
};

}  // namespace verbatim::device
