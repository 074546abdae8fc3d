// The soft device behind device::Context: genuine verbs objects in front of an engine and its wire.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "device/context.hpp"
#include "device/soft/control.hpp"
#include "device/soft/engine/engine.hpp"
#include "device/soft/engine/faulty_wire.hpp"
#include "device/soft/engine/silent_wire.hpp"
#include "device/soft/verbs/engine_lock.hpp"
#include "device/soft/verbs/event_queue.hpp"
#include "device/soft/verbs/forking.hpp"
#include "device/soft/verbs/objects.hpp"

namespace verbatim::soft {

// How a verb fails that makes something.
template <typename Object>
[[nodiscard]] Object* fail(int error) {
  errno = error;
  return nullptr;
}

// What surrounds an engine: the wire's edge, where memory comes from and threads live.
class Edge {
 public:
  virtual ~Edge() = default;
  // As device::Context::allocate() and release(): the edge knows which memory peers can map.
  virtual device::Memory allocate(std::size_t bytes) = 0;
  virtual void release(device::Memory memory) = 0;
  // A completion queue was armed: the application is likely to sleep now, and somebody has to keep the engine going.
  virtual void application_sleeps() = 0;
  // The engine has something due then, of which the edge may not know. On the data path: cheap if it does.
  virtual void due_by(Time deadline) = 0;
  // In a forked child: what is shared with peers, and every thread, is the parent's.
  virtual void forked() {}
};

// The verbs_context that inline functions of verbs find behind an ibv_context.
struct SoftVerbs : verbs_context {
  class SoftContext* owner = nullptr;
};

// In a child of fork(2) the device stays its opener's. There a call that destroys or acknowledges releases the child's
// own memory; every other call fails with EPERM, the data path's too, and Control's throw Error(permission).
class SoftContext final : public device::Context, public Control, private EventSink, private ForkParticipant {
 public:
  // What a device is built from. `wire` may be used by the engine until the context is gone.
  struct Parts {
    DeviceConfig config;  // with GIDs and seed filled in
    std::unique_ptr<Wire> wire;
    std::unique_ptr<Clock> clock;
  };
  explicit SoftContext(Parts parts);
  ~SoftContext() override;

  static SoftContext& of(ibv_context* context) { return *static_cast<SoftVerbs*>(verbs_get_ctx(context))->owner; }

  // -- for the data path (data_path.cpp, extended_send.cpp, extended_poll.cpp) and the wire's edge
  // ---------------------
  [[nodiscard]] EngineLock& lock() { return lock_; }
  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] Edge& edge() { return *edge_; }
  // The edge is made last, when there is something for its thread to work on.
  void set_edge(std::unique_ptr<Edge> edge) { edge_ = std::move(edge); }
  // What a thread of the edge does while the application sleeps: one turn of the engine. When to come again.
  Time progress_for_application();
  // When progress_for_application() has something to do even if no packet arrives.
  [[nodiscard]] Time next_deadline();
  // The device was opened by another process, of which this one is a child.
  [[nodiscard]] bool forked() const { return forked_; }

  // -- device::Context -----------------------------------------------------------------------------------------------
  [[nodiscard]] ibv_context* handle() const noexcept override { return &verbs_->context; }
  [[nodiscard]] const std::string& name() const noexcept override { return config_.name; }
  int query_device(ibv_device_attr_ex& attributes) override;
  int query_port(std::uint8_t port, ibv_port_attr& attributes) override;
  int query_gid_table(std::vector<ibv_gid_entry>& entries) override;
  int query_pkey(std::uint8_t port, int index, std::uint16_t& pkey) override;
  [[nodiscard]] std::vector<device::Counter> counters(std::uint8_t port) override;

  ibv_pd* alloc_pd() override;
  int dealloc_pd(ibv_pd* pd) override;
  ibv_td* alloc_td(ibv_td_init_attr& attributes) override;
  int dealloc_td(ibv_td* td) override;
  ibv_pd* alloc_parent_domain(ibv_parent_domain_init_attr& attributes) override;
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) override;
  int dereg_mr(ibv_mr* mr) override;
  // As ibv_rereg_mr(3), but answers an errno value; the region's keys stay. What fails leaves the region as it was.
  int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access);
  ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) override;
  int dealloc_mw(ibv_mw* mw) override;
  device::Memory allocate(std::size_t bytes) override;
  void release(device::Memory memory) override;

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
  int attach_mcast(ibv_qp* qp, const ibv_gid& gid, std::uint16_t lid) override;
  int detach_mcast(ibv_qp* qp, const ibv_gid& gid, std::uint16_t lid) override;

  // -- Control -------------------------------------------------------------------------------------------------------
  void set_port_active(std::uint8_t port, bool active) override;
  void set_active_mtu(std::uint8_t port, ibv_mtu mtu) override;
  void set_gid(std::uint8_t port, std::uint32_t index, const GidConfig& gid) override;
  void set_pkey(std::uint8_t port, std::uint32_t index, std::uint16_t pkey) override;
  void set_faults(const FaultPlan& plan) override;
  void kill(ibv_qp* qp) override;

 private:
  void completion_event(CompletionQueue& cq) override;
  void queue_pair_event(QueuePair& queue_pair, ibv_event_type type) override;
  void queue_event(CompletionQueue& cq, ibv_event_type type) override;
  void queue_event(SharedReceiveQueue& srq, ibv_event_type type) override;
  void port_event(std::uint8_t port, ibv_event_type type) override;

  void before_fork() override;
  void after_fork_in_parent() override;
  void after_fork_in_child() override;

  [[nodiscard]] Time earliest_deadline() const;
  void expect_port(std::uint8_t port) const;
  void expect_opener() const;
  void fill_device();
  void fill_verbs();
  // A queue or queue pair was made in `thread_domain` (or in none), or is gone: is one thread domain all there is?
  void object_made(ibv_td* thread_domain);
  void object_gone(ibv_td* thread_domain);
  void settle_bias();
  // Nothing raises events about an object any more: what nobody took goes, what somebody took must come back. False if
  // it did not within event_acknowledge_limit.
  template <typename Object>
  [[nodiscard]] bool settle_async_events(Object* object, UnacknowledgedEvents& taken) {
    if (forked_) return true;  // they are the parent's
    async_events_.remove_if(is_about(object));
    return taken.wait();
  }
  SoftQueue* make_cq(std::uint32_t cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector,
                     ibv_td* thread_domain);

  DeviceConfig config_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<SoftVerbs> verbs_;
  std::unique_ptr<struct SoftDeviceRoom> device_;
  std::mutex events_mutex_;  // of all event queues; may be taken while lock_ is held, not the other way round
  EventQueue<ibv_async_event> async_events_{events_mutex_};
  EngineLock lock_;
  bool forked_ = false;
  SilentWire silent_wire_;  // a forked child's
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<FaultyWire> faulty_wire_;  // in front of wire_ while packets are struck
  std::unique_ptr<Edge> edge_;               // last: its thread, if it has one, uses all of the above

  // Guarded by a visit of lock_.
  std::multiset<ibv_td*> thread_domains_in_use_;  // one entry an object; nullptr for objects made in none
  std::uint32_t next_domain_ = 1;
  std::uint32_t domain_count_ = 0;
  std::uint32_t cq_count_ = 0;
  std::uint32_t srq_count_ = 0;
  std::uint32_t ah_count_ = 0;

  ForkRegistration fork_registration_{*this};  // last: a context in part takes no part
};

// The data path's entries in ibv_context_ops and in each extended object.
void fill_data_path(ibv_context_ops& ops);
void refuse_data_path(ibv_context_ops& ops);  // in a forked child
void fill_extended_send(SoftQueuePair& queue_pair);
void fill_extended_poll(SoftQueue& cq);

}  // namespace verbatim::soft
