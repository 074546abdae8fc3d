// An Endpoint on a device of this process.
#pragma once

#include <functional>
#include <memory>

#include "conformance/endpoint.hpp"
#include "conformance/table.hpp"

namespace verbatim::conformance {

using OpenDevice = std::function<std::unique_ptr<device::Context>()>;

class LocalEndpoint final : public Endpoint {
 public:
  explicit LocalEndpoint(OpenDevice open_device) : open_device_(std::move(open_device)) {}
  ~LocalEndpoint() override { close(); }

  void open() override;
  int close() override;
  std::string name() override { return device().name(); }
  ibv_device_attr_ex query_device() override;
  ibv_port_attr query_port(std::uint8_t port) override;
  std::vector<ibv_gid_entry> query_gid_table() override;
  QueriedPkey query_pkey(std::uint8_t port, int index) override;
  std::vector<device::Counter> counters(std::uint8_t port) override;

  MadeBuffer allocate(std::size_t bytes, MemoryKind kind) override;
  void release(Buffer buffer) override;
  std::vector<std::uint8_t> read(Buffer buffer, std::size_t offset, std::size_t bytes) override;
  void write(Buffer buffer, std::size_t offset, std::vector<std::uint8_t> bytes) override;
  void fill(Buffer buffer, std::size_t offset, std::size_t bytes, std::uint32_t seed) override;
  std::optional<std::size_t> first_difference(Buffer buffer, std::size_t offset, std::size_t bytes,
                                              std::uint32_t seed) override;

  Made<Pd> alloc_pd() override;
  int dealloc_pd(Pd pd) override;
  MadeMr reg_mr(Pd pd, Buffer buffer, std::size_t offset, std::size_t bytes, int access) override;
  int dereg_mr(Mr mr) override;
  MadeMw alloc_mw(Pd pd, ibv_mw_type type) override;
  int dealloc_mw(Mw mw) override;
  int bind_mw(Qp qp, Mw mw, BindRequest request) override;
  std::uint32_t mw_rkey(Mw mw) override;
  Made<Ah> create_ah(Pd pd, ibv_ah_attr attributes) override;
  Made<Ah> create_ah_from_wc(Pd pd, ibv_wc completion, Buffer grh, std::size_t offset, std::uint8_t port) override;
  int destroy_ah(Ah ah) override;

  Made<Channel> create_comp_channel() override;
  int destroy_comp_channel(Channel channel) override;
  Made<Cq> create_cq(CqOptions options) override;
  int resize_cq(Cq cq, int entries) override;
  int cq_entries(Cq cq) override;
  int destroy_cq(Cq cq) override;
  Polled poll_cq(Cq cq, int at_most) override;
  Polled poll_cq_extended(Cq cq, int at_most) override;
  int req_notify_cq(Cq cq, bool solicited_only) override;
  bool channel_readable(Channel channel) override;
  std::optional<CqEvent> get_cq_event(Channel channel) override;
  void ack_cq_events(Cq cq, unsigned events) override;
  std::optional<AsyncEvent> get_async_event() override;

  Made<Srq> create_srq(SrqOptions options) override;
  int modify_srq(Srq srq, ibv_srq_attr attributes, int mask) override;
  QueriedSrq query_srq(Srq srq) override;
  int destroy_srq(Srq srq) override;
  MadeQp create_qp(QpOptions options) override;
  int modify_qp(Qp qp, ibv_qp_attr attributes, int mask) override;
  QueriedQp query_qp(Qp qp, int mask) override;
  bool data_in_order(Qp qp, ibv_wr_opcode opcode) override;
  int destroy_qp(Qp qp) override;
  Posted post_send(Qp qp, std::vector<SendRequest> requests) override;
  int post_send_extended(Qp qp, std::vector<SendRequest> requests) override;
  void abort_send_extended(Qp qp, std::vector<SendRequest> requests) override;
  Posted post_recv(Qp qp, std::vector<ReceiveRequest> requests) override;
  Posted post_srq_recv(Srq srq, std::vector<ReceiveRequest> requests) override;

 private:
  struct LocalCq {
    ibv_cq* cq = nullptr;
    ibv_cq_ex* extended = nullptr;
    std::uint64_t wc_flags = 0;
    unsigned unacknowledged = 0;  // so that closing after a failed test does not wait for ever
  };
  struct LocalQp {
    ibv_qp* qp = nullptr;
    ibv_qp_ex* extended = nullptr;
  };

  device::Context& device();
  std::uint8_t* range(Buffer buffer, std::size_t offset, std::size_t bytes);
  std::vector<ibv_send_wr> translate(std::vector<SendRequest>& requests);
  void build_extended(ibv_qp_ex* qp, const SendRequest& request);
  void set_payload(ibv_qp_ex* qp, const SendRequest& request);
  void release_memory(const device::Memory& memory, MemoryKind kind);

  struct LocalMemory {
    device::Memory memory;
    MemoryKind kind = MemoryKind::anonymous;
  };

  OpenDevice open_device_;
  std::unique_ptr<device::Context> device_;
  Table<Buffer, LocalMemory> buffers_;
  Table<Pd, ibv_pd*> pds_;
  Table<Mr, ibv_mr*> mrs_;
  Table<Mw, ibv_mw*> mws_;
  Table<Ah, ibv_ah*> ahs_;
  Table<Channel, ibv_comp_channel*> channels_;
  Table<Cq, LocalCq> cqs_;
  Table<Srq, ibv_srq*> srqs_;
  Table<Qp, LocalQp> qps_;
};

}  // namespace verbatim::conformance
