// One side of a test: a device and everything made on it, driven by coarse calls. Each call means what the verb of the
// same name means. A test speaks to both of its sides like this, wherever they live.
//
// int results are 0 or an errno value. What can't happen to a right test (a handle that names nothing, a process that
// is gone) throws.
#pragma once

#include "conformance/objects.hpp"
#include "device/context.hpp"

namespace verbatim::conformance {

class Endpoint {
 public:
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  virtual ~Endpoint() = default;

  // -- device ----------------------------------------------------------------------------------------------------
  virtual void open() = 0;  // throws verbatim::Error as device::Provider::open does
  // Destroys what is left, children first, and closes the device. The first errno on the way, or 0.
  virtual int close() = 0;
  virtual std::string name() = 0;
  virtual ibv_device_attr_ex query_device() = 0;
  virtual ibv_port_attr query_port(std::uint8_t port) = 0;
  virtual std::vector<ibv_gid_entry> query_gid_table() = 0;
  virtual QueriedPkey query_pkey(std::uint8_t port, int index) = 0;
  virtual std::vector<device::Counter> counters(std::uint8_t port) = 0;

  // -- memory ----------------------------------------------------------------------------------------------------
  virtual MadeBuffer allocate(std::size_t bytes, MemoryKind kind) = 0;
  virtual void release(Buffer buffer) = 0;
  virtual std::vector<std::uint8_t> read(Buffer buffer, std::size_t offset, std::size_t bytes) = 0;
  virtual void write(Buffer buffer, std::size_t offset, std::vector<std::uint8_t> bytes) = 0;
  // Byte i of the range becomes, or is compared with, pattern_byte(seed, i) of pattern.hpp.
  virtual void fill(Buffer buffer, std::size_t offset, std::size_t bytes, std::uint32_t seed) = 0;
  // Index of the first byte of the range that differs from the pattern.
  virtual std::optional<std::size_t> first_difference(Buffer buffer, std::size_t offset, std::size_t bytes,
                                                      std::uint32_t seed) = 0;

  // -- protection ------------------------------------------------------------------------------------------------
  virtual Made<Pd> alloc_pd() = 0;
  virtual int dealloc_pd(Pd pd) = 0;
  virtual MadeMr reg_mr(Pd pd, Buffer buffer, std::size_t offset, std::size_t bytes, int access) = 0;
  virtual int dereg_mr(Mr mr) = 0;
  virtual MadeMw alloc_mw(Pd pd, ibv_mw_type type) = 0;
  virtual int dealloc_mw(Mw mw) = 0;
  virtual int bind_mw(Qp qp, Mw mw, BindRequest request) = 0;
  virtual std::uint32_t mw_rkey(Mw mw) = 0;
  virtual Made<Ah> create_ah(Pd pd, ibv_ah_attr attributes) = 0;
  // `grh` is the buffer, and the offset in it, where the 40 bytes before the datagram are.
  virtual Made<Ah> create_ah_from_wc(Pd pd, ibv_wc completion, Buffer grh, std::size_t offset, std::uint8_t port) = 0;
  virtual int destroy_ah(Ah ah) = 0;

  // -- completions and events ------------------------------------------------------------------------------------
  virtual Made<Channel> create_comp_channel() = 0;
  virtual int destroy_comp_channel(Channel channel) = 0;
  virtual Made<Cq> create_cq(CqOptions options) = 0;
  virtual int resize_cq(Cq cq, int entries) = 0;
  virtual int cq_entries(Cq cq) = 0;
  virtual int destroy_cq(Cq cq) = 0;
  virtual Polled poll_cq(Cq cq, int at_most) = 0;
  // By ibv_start_poll … ibv_end_poll; every field that the CQ was asked for.
  virtual Polled poll_cq_extended(Cq cq, int at_most) = 0;
  virtual int req_notify_cq(Cq cq, bool solicited_only) = 0;
  virtual bool channel_readable(Channel channel) = 0;
  virtual std::optional<CqEvent> get_cq_event(Channel channel) = 0;  // never blocks
  virtual void ack_cq_events(Cq cq, unsigned events) = 0;
  virtual std::optional<AsyncEvent> get_async_event() = 0;  // never blocks; acknowledged at once

  // -- queues ----------------------------------------------------------------------------------------------------
  virtual Made<Srq> create_srq(SrqOptions options) = 0;
  virtual int modify_srq(Srq srq, ibv_srq_attr attributes, int mask) = 0;
  virtual QueriedSrq query_srq(Srq srq) = 0;
  virtual int destroy_srq(Srq srq) = 0;
  virtual MadeQp create_qp(QpOptions options) = 0;
  virtual int modify_qp(Qp qp, ibv_qp_attr attributes, int mask) = 0;
  virtual QueriedQp query_qp(Qp qp, int mask) = 0;
  virtual bool data_in_order(Qp qp, ibv_wr_opcode opcode) = 0;
  virtual int destroy_qp(Qp qp) = 0;
  virtual Posted post_send(Qp qp, std::vector<SendRequest> requests) = 0;
  // The same by ibv_wr_start … ibv_wr_complete.
  virtual int post_send_extended(Qp qp, std::vector<SendRequest> requests) = 0;
  // ibv_wr_start, the requests, ibv_wr_abort.
  virtual void abort_send_extended(Qp qp, std::vector<SendRequest> requests) = 0;
  virtual Posted post_recv(Qp qp, std::vector<ReceiveRequest> requests) = 0;
  virtual Posted post_srq_recv(Srq srq, std::vector<ReceiveRequest> requests) = 0;
};

}  // namespace verbatim::conformance
