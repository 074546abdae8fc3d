#include "device/soft/verbs/soft_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error.hpp"

namespace verbatim::soft {

// Readers of libibverbs' private verbs_device look behind the ibv_device: they find zeroes.
struct SoftDeviceRoom {
  ibv_device device{};
  std::byte behind[512]{};
};

Control* control_of(device::Context& context) {
  return dynamic_cast<SoftContext*>(&context);
}

SoftContext::SoftContext(Parts parts)
    : config_(std::move(parts.config)),
      clock_(std::move(parts.clock)),
      wire_(std::move(parts.wire)),
      verbs_(std::make_unique<SoftVerbs>()),
      device_(std::make_unique<SoftDeviceRoom>()),
      engine_(std::make_unique<Engine>(config_, *wire_, *clock_, static_cast<EventSink&>(*this))) {
  fill_device();
  fill_verbs();
  engine_->tell_wire_gids();
  if (!config_.faults.packets.empty()) set_faults(config_.faults);
}

SoftContext::~SoftContext() = default;

void SoftContext::fill_device() {
  ibv_device& device = device_->device;
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  std::snprintf(device.name, sizeof(device.name), "%s", config_.name.c_str());
}

void SoftContext::fill_verbs() {
  SoftVerbs& verbs = *verbs_;
  verbs.owner = this;
  verbs.sz = sizeof(verbs_context);
  verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  verbs.context.device = &device_->device;
  verbs.context.cmd_fd = -1;
  verbs.context.async_fd = async_events_.fd();
  verbs.context.num_comp_vectors = 1;
  fill_data_path(verbs.context.ops);
  // What inline functions of verbs ask for; absent ones answer EOPNOTSUPP by themselves.
  verbs.query_port = [](ibv_context* context, std::uint8_t port, ibv_port_attr* attributes, std::size_t) {
    return of(context).query_port(port, *attributes);
  };
  verbs.query_device_ex = [](ibv_context* context, const ibv_query_device_ex_input*, ibv_device_attr_ex* attributes,
                             std::size_t) { return of(context).query_device(*attributes); };
  verbs.create_cq_ex = [](ibv_context* context, ibv_cq_init_attr_ex* attributes) {
    return of(context).create_cq_ex(*attributes);
  };
  verbs.create_qp_ex = [](ibv_context* context, ibv_qp_init_attr_ex* attributes) {
    return of(context).create_qp_ex(*attributes);
  };
  verbs.alloc_td = [](ibv_context* context, ibv_td_init_attr* attributes) { return of(context).alloc_td(*attributes); };
  verbs.dealloc_td = [](ibv_td* td) { return of(td->context).dealloc_td(td); };
  verbs.alloc_parent_domain = [](ibv_context* context, ibv_parent_domain_init_attr* attributes) {
    return of(context).alloc_parent_domain(*attributes);
  };
}

Time SoftContext::progress_for_application() {
  const EngineVisit visit(lock_);
  engine_->progress();
  const Time now = engine_->now();
  engine_->run_timers(now);
  if (engine_->owes_work()) {
    engine_->progress();
    if (engine_->owes_work()) return now;  // the wire has no room: come back soon
  }
  return earliest_deadline();
}

Time SoftContext::next_deadline() {
  const EngineVisit visit(lock_);
  return engine_->owes_work() ? engine_->now() : earliest_deadline();
}

Time SoftContext::earliest_deadline() const {
  const Time held = faulty_wire_ ? faulty_wire_->next_release() : never;
  return std::min(engine_->next_deadline(), held);
}

// -- fork ------------------------------------------------------------------------------------------------------------

// Nobody is inside the engine or an event queue while the child's copy of them is made.
void SoftContext::before_fork() {
  lock_.visit();
  events_mutex_.lock();
}

void SoftContext::after_fork_in_parent() {
  events_mutex_.unlock();
  lock_.end_visit();
}

void SoftContext::after_fork_in_child() {
  forked_ = true;
  refuse_data_path(verbs_->context.ops);
  engine_->set_wire(silent_wire_);
  if (edge_) edge_->forked();
  events_mutex_.unlock();
  lock_.end_visit();
}

void SoftContext::expect_opener() const {
  if (!forked_) return;
  throw Error(ErrorCode::permission,
              fmt::format("{} was opened before this process was forked; open a device of its own", config_.name));
}

// -- the bias of the lock --------------------------------------------------------------------------------------------

void SoftContext::object_made(ibv_td* thread_domain) {
  thread_domains_in_use_.insert(thread_domain);
  settle_bias();
}

void SoftContext::object_gone(ibv_td* thread_domain) {
  thread_domains_in_use_.erase(thread_domains_in_use_.find(thread_domain));
  settle_bias();
}

void SoftContext::settle_bias() {
  const bool one_domain = !thread_domains_in_use_.empty() && *thread_domains_in_use_.begin() != nullptr &&
                          *thread_domains_in_use_.begin() == *thread_domains_in_use_.rbegin();
  lock_.set_biased(one_domain);
}

// -- Control ---------------------------------------------------------------------------------------------------------

void SoftContext::expect_port(std::uint8_t port) const {
  if (port != 0 && port <= engine_->port_count()) return;
  throw Error(ErrorCode::not_found,
              fmt::format("{} has no port {}; its ports are 1 to {}", config_.name, port, engine_->port_count()));
}

void SoftContext::set_port_active(std::uint8_t port, bool active) {
  expect_opener();
  const EngineVisit visit(lock_);
  expect_port(port);
  engine_->set_port_active(port, active);
}

void SoftContext::set_active_mtu(std::uint8_t port, ibv_mtu mtu) {
  expect_opener();
  const EngineVisit visit(lock_);
  expect_port(port);
  engine_->set_active_mtu(port, mtu);
}

void SoftContext::set_gid(std::uint8_t port, std::uint32_t index, const GidConfig& gid) {
  expect_opener();
  const EngineVisit visit(lock_);
  expect_port(port);
  engine_->set_gid(port, index, gid);
}

void SoftContext::set_pkey(std::uint8_t port, std::uint32_t index, std::uint16_t pkey) {
  expect_opener();
  const EngineVisit visit(lock_);
  expect_port(port);
  engine_->set_pkey(port, index, pkey);
}

void SoftContext::set_faults(const FaultPlan& plan) {
  expect_opener();
  const EngineVisit visit(lock_);
  engine_->set_faults(plan);
  if (plan.packets.empty()) {
    engine_->set_wire(*wire_);
    faulty_wire_.reset();
    return;
  }
  auto faulty = std::make_unique<FaultyWire>(*wire_, plan.packets, *clock_, config_.seed);
  engine_->set_wire(*faulty);
  faulty_wire_ = std::move(faulty);
}

void SoftContext::kill(ibv_qp* qp) {
  expect_opener();
  const EngineVisit visit(lock_);
  engine_->kill(SoftQueuePair::of(qp).engine_part);
  qp->state = SoftQueuePair::of(qp).engine_part.state;
}

}  // namespace verbatim::soft
