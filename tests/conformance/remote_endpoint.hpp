// An Endpoint in another process: a child that was forked for it. Each call is sent there and its result comes back.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

#include "conformance/calls.hpp"
#include "conformance/link.hpp"

namespace verbatim::conformance {

// How long a call may take over there.
inline constexpr std::chrono::seconds answer_patience{60};
// How long the process may take to end once its link is closed; then it is killed.
inline constexpr std::chrono::seconds exit_patience{5};

class RemoteEndpoint final : public Endpoint {
 public:
  // Forks. `make_endpoint` runs in the child; neither process may have opened a device before.
  explicit RemoteEndpoint(const std::function<std::unique_ptr<Endpoint>()>& make_endpoint);
  ~RemoteEndpoint() override;

  void open() override { return call<&Endpoint::open>(); }
  int close() override { return call<&Endpoint::close>(); }
  std::string name() override { return call<&Endpoint::name>(); }
  ibv_device_attr_ex query_device() override { return call<&Endpoint::query_device>(); }
  ibv_port_attr query_port(std::uint8_t port) override { return call<&Endpoint::query_port>(port); }
  std::vector<ibv_gid_entry> query_gid_table() override { return call<&Endpoint::query_gid_table>(); }
  QueriedPkey query_pkey(std::uint8_t port, int index) override { return call<&Endpoint::query_pkey>(port, index); }
  std::vector<device::Counter> counters(std::uint8_t port) override { return call<&Endpoint::counters>(port); }
  MadeBuffer allocate(std::size_t bytes, MemoryKind kind) override { return call<&Endpoint::allocate>(bytes, kind); }
  void release(Buffer buffer) override { return call<&Endpoint::release>(buffer); }
  std::vector<std::uint8_t> read(Buffer buffer, std::size_t offset, std::size_t bytes) override {
    return call<&Endpoint::read>(buffer, offset, bytes);
  }
  void write(Buffer buffer, std::size_t offset, std::vector<std::uint8_t> bytes) override {
    return call<&Endpoint::write>(buffer, offset, bytes);
  }
  void fill(Buffer buffer, std::size_t offset, std::size_t bytes, std::uint32_t seed) override {
    return call<&Endpoint::fill>(buffer, offset, bytes, seed);
  }
  std::optional<std::size_t> first_difference(Buffer buffer, std::size_t offset, std::size_t bytes,
                                              std::uint32_t seed) override {
    return call<&Endpoint::first_difference>(buffer, offset, bytes, seed);
  }
  Made<Pd> alloc_pd() override { return call<&Endpoint::alloc_pd>(); }
  int dealloc_pd(Pd pd) override { return call<&Endpoint::dealloc_pd>(pd); }
  MadeMr reg_mr(Pd pd, Buffer buffer, std::size_t offset, std::size_t bytes, int access) override {
    return call<&Endpoint::reg_mr>(pd, buffer, offset, bytes, access);
  }
  int dereg_mr(Mr mr) override { return call<&Endpoint::dereg_mr>(mr); }
  MadeMw alloc_mw(Pd pd, ibv_mw_type type) override { return call<&Endpoint::alloc_mw>(pd, type); }
  int dealloc_mw(Mw mw) override { return call<&Endpoint::dealloc_mw>(mw); }
  int bind_mw(Qp qp, Mw mw, BindRequest request) override { return call<&Endpoint::bind_mw>(qp, mw, request); }
  std::uint32_t mw_rkey(Mw mw) override { return call<&Endpoint::mw_rkey>(mw); }
  Made<Ah> create_ah(Pd pd, ibv_ah_attr attributes) override { return call<&Endpoint::create_ah>(pd, attributes); }
  Made<Ah> create_ah_from_wc(Pd pd, ibv_wc completion, Buffer grh, std::size_t offset, std::uint8_t port) override {
    return call<&Endpoint::create_ah_from_wc>(pd, completion, grh, offset, port);
  }
  int destroy_ah(Ah ah) override { return call<&Endpoint::destroy_ah>(ah); }
  Made<Channel> create_comp_channel() override { return call<&Endpoint::create_comp_channel>(); }
  int destroy_comp_channel(Channel channel) override { return call<&Endpoint::destroy_comp_channel>(channel); }
  Made<Cq> create_cq(CqOptions options) override { return call<&Endpoint::create_cq>(options); }
  int resize_cq(Cq cq, int entries) override { return call<&Endpoint::resize_cq>(cq, entries); }
  int cq_entries(Cq cq) override { return call<&Endpoint::cq_entries>(cq); }
  int destroy_cq(Cq cq) override { return call<&Endpoint::destroy_cq>(cq); }
  Polled poll_cq(Cq cq, int at_most) override { return call<&Endpoint::poll_cq>(cq, at_most); }
  Polled poll_cq_extended(Cq cq, int at_most) override { return call<&Endpoint::poll_cq_extended>(cq, at_most); }
  int req_notify_cq(Cq cq, bool solicited_only) override { return call<&Endpoint::req_notify_cq>(cq, solicited_only); }
  bool channel_readable(Channel channel) override { return call<&Endpoint::channel_readable>(channel); }
  std::optional<CqEvent> get_cq_event(Channel channel) override { return call<&Endpoint::get_cq_event>(channel); }
  void ack_cq_events(Cq cq, unsigned events) override { return call<&Endpoint::ack_cq_events>(cq, events); }
  std::optional<AsyncEvent> get_async_event() override { return call<&Endpoint::get_async_event>(); }
  Made<Srq> create_srq(SrqOptions options) override { return call<&Endpoint::create_srq>(options); }
  int modify_srq(Srq srq, ibv_srq_attr attributes, int mask) override {
    return call<&Endpoint::modify_srq>(srq, attributes, mask);
  }
  QueriedSrq query_srq(Srq srq) override { return call<&Endpoint::query_srq>(srq); }
  int destroy_srq(Srq srq) override { return call<&Endpoint::destroy_srq>(srq); }
  MadeQp create_qp(QpOptions options) override { return call<&Endpoint::create_qp>(options); }
  int modify_qp(Qp qp, ibv_qp_attr attributes, int mask) override {
    return call<&Endpoint::modify_qp>(qp, attributes, mask);
  }
  QueriedQp query_qp(Qp qp, int mask) override { return call<&Endpoint::query_qp>(qp, mask); }
  bool data_in_order(Qp qp, ibv_wr_opcode opcode) override { return call<&Endpoint::data_in_order>(qp, opcode); }
  int destroy_qp(Qp qp) override { return call<&Endpoint::destroy_qp>(qp); }
  Posted post_send(Qp qp, std::vector<SendRequest> requests) override {
    return call<&Endpoint::post_send>(qp, requests);
  }
  int post_send_extended(Qp qp, std::vector<SendRequest> requests) override {
    return call<&Endpoint::post_send_extended>(qp, requests);
  }
  void abort_send_extended(Qp qp, std::vector<SendRequest> requests) override {
    return call<&Endpoint::abort_send_extended>(qp, requests);
  }
  Posted post_recv(Qp qp, std::vector<ReceiveRequest> requests) override {
    return call<&Endpoint::post_recv>(qp, requests);
  }
  Posted post_srq_recv(Srq srq, std::vector<ReceiveRequest> requests) override {
    return call<&Endpoint::post_srq_recv>(srq, requests);
  }

 private:
  template <auto Method, class... Arguments>
  auto call(const Arguments&... arguments) -> typename Call<Method>::ResultType {
    Writer request;
    request.put(Calls::number<Method>());
    (request.put(arguments), ...);
    Reader result = exchange(request);
    if constexpr (!std::is_void_v<typename Call<Method>::ResultType>) {
      return result.get<typename Call<Method>::ResultType>();
    }
  }
  Reader exchange(const Writer& request);

  pid_t child_ = 0;
  std::unique_ptr<Link> link_;
};

}  // namespace verbatim::conformance
