#include "qp/rc_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "qp/device_failure.hpp"

namespace verbatim::qp {
namespace {

// Behind everything else in each queue, when it is drained.
constexpr std::uint32_t marker = 1;

void expect(bool right, const std::string& sentence) {
  if (!right) throw Error(ErrorCode::invalid_argument, sentence);
}

}  // namespace

RcPool::RcPool(device::Context& context, const ProtectionDomain& domain, CompletionQueue& completion_queue,
               LocalPort port, const RcPoolSettings& settings)
    : context_(context),
      domain_(domain),
      completion_queue_(completion_queue),
      port_(std::move(port)),
      settings_(settings) {
  read_limits();
  const auto ahead = std::min(settings_.initial, counts_.limit);
  try {
    while (idle_.size() < ahead) idle_.push_back(make());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::no_space) throw;
    log().info("{} of {} RC queue pairs made ahead: {}", idle_.size(), ahead, error.what());
  }
}

RcPool::~RcPool() {
  for (auto& queue : idle_) destroy(std::move(queue), Leftovers::none);
  for (auto& returned : returned_) destroy(std::move(returned.queue), Leftovers::possible);
}

void RcPool::read_limits() {
  ibv_device_attr_ex device{};
  if (const int problem = context_.query_device(device)) fail("limits of " + context_.name(), problem);
  const auto& has = device.orig_attr;
  device_limit_ = static_cast<std::uint32_t>(std::max(has.max_qp, 0));
  counts_.limit = std::min(settings_.max, device_limit_);
  const auto requests = static_cast<std::uint32_t>(std::max(has.max_qp_wr, 0));
  const std::uint64_t sends = std::uint64_t{settings_.send_depth} + settings_.control_slots + marker;
  const std::uint64_t receives = std::uint64_t{settings_.receive_slots} + marker;
  expect(settings_.send_depth > 0 && settings_.receive_slots > 0, "a queue pair needs send and receive slots");
  expect(sends <= requests, fmt::format("{} send and {} control slots of a queue pair, and one for its drain, are more "
                                        "than the {} requests that {} allows: ask for fewer",
                                        settings_.send_depth, settings_.control_slots, requests, context_.name()));
  expect(receives <= requests, fmt::format("{} receive slots of a queue pair, and one for its drain, are more than the "
                                           "{} requests that {} allows: ask for fewer",
                                           settings_.receive_slots, requests, context_.name()));
}

std::unique_ptr<ReliableQueue> RcPool::lease() {
  std::unique_ptr<ReliableQueue> queue;
  if (idle_.empty()) {
    queue = make();
  } else {
    queue = std::move(idle_.back());
    idle_.pop_back();
  }
  ++counts_.leased;
  return queue;
}

std::unique_ptr<ReliableQueue> RcPool::make() {
  if (counts().used() >= counts_.limit) throw used_up();
  if (auto error = completion_queue_.reserve(settings_.completion_entries())) throw std::move(*error);
  try {
    auto queue = create();
    ++counts_.made;
    return queue;
  } catch (...) {
    completion_queue_.release(settings_.completion_entries());
    throw;
  }
}

Error RcPool::used_up() const {
  const auto counted = counts();
  return {ErrorCode::no_space,
          fmt::format("RC queue pairs on {}: {} of {} are used ({} by channels, {} still draining); the worker's limit "
                      "is {}, the device's {}: close channels{}",
                      context_.name(), counted.used(), counted.limit, counted.leased, counted.draining, settings_.max,
                      device_limit_, settings_.max < device_limit_ ? ", or raise the worker's limit" : "")};
}

// How much inline data a device can do, verbs only tells by refusing. So the first queue pair asks for less and less.
QueuePair RcPool::create_queue_pair(std::uint32_t& granted_inline) {
  for (;;) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = completion_queue_.handle();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = settings_.send_depth + settings_.control_slots + marker;
    attributes.cap.max_recv_wr = settings_.receive_slots + marker;
    attributes.cap.max_send_sge = max_segments;
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = settings_.inline_bytes;
    try {
      auto queue_pair = QueuePair::create(context_, domain_.for_queue_pairs(), attributes);
      granted_inline = attributes.cap.max_inline_data;
      return queue_pair;
    } catch (const Error& error) {
      if (counts_.made > 0) throw refused_another(error);
      if (settings_.inline_bytes == 0) throw;
      settings_.inline_bytes /= 2;
    }
  }
}

// The limits of a device are shared with whoever else uses it.
Error RcPool::refused_another(const Error& error) const {
  const auto counted = counts();
  return {ErrorCode::no_space, fmt::format("RC queue pairs on {}: {} of {} are used here, and the device gives no more "
                                           "({}): close channels, here or in other programs",
                                           context_.name(), counted.used(), counted.limit, error.what())};
}

std::unique_ptr<ReliableQueue> RcPool::create() {
  ReliableQueue::Sizes sizes{.send_slots = settings_.send_depth,
                             .control_slots = settings_.control_slots,
                             .receive_slots = settings_.receive_slots,
                             .signal_interval = settings_.signal_interval,
                             .max_inline = 0};
  auto queue_pair = create_queue_pair(sizes.max_inline);
  queue_pair.modify(to_init(port_.port, port_.pkey_index, peer_access));
  return std::make_unique<ReliableQueue>(context_, std::move(queue_pair), sizes, chain_);
}

void RcPool::destroy(std::unique_ptr<ReliableQueue> queue, Leftovers leftovers) noexcept {
  queue.reset();
  if (leftovers == Leftovers::none) {
    completion_queue_.release(settings_.completion_entries());
  } else {
    completion_queue_.release_when_empty(settings_.completion_entries());
  }
}

void RcPool::give_back(std::unique_ptr<ReliableQueue> queue, Time now) {
  --counts_.leased;
  Recycling recycling(*queue, next_drain_round(), now, settings_.drain_limit);
  returned_.push_back({std::move(queue), std::move(recycling)});
}

bool RcPool::on_completion(const WorkCompletion& completion) {
  if (completion.id.kind != WorkKind::drain) return false;
  return std::any_of(returned_.begin(), returned_.end(),
                     [&](Returned& returned) { return returned.recycling.on_completion(completion); });
}

Time RcPool::deadline() const noexcept {
  Time earliest = never;
  for (const auto& returned : returned_) earliest = std::min(earliest, returned.recycling.deadline());
  return earliest;
}

RcPool::Counts RcPool::counts() const noexcept {
  Counts counted = counts_;
  counted.idle = static_cast<std::uint32_t>(idle_.size());
  counted.draining = static_cast<std::uint32_t>(returned_.size());
  return counted;
}

std::vector<Retired> RcPool::retire(Time now) {
  std::vector<Retired> retired;
  for (std::size_t i = 0; i < returned_.size();) {
    const RecyclingState state = returned_[i].recycling.progress(now);
    if (state != RecyclingState::in_init && state != RecyclingState::failed) {
      ++i;
      continue;
    }
    retired.push_back(settle(returned_[i], now));
    returned_.erase(returned_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!retired.empty()) replace_lost();
  return retired;
}

Retired RcPool::settle(Returned& returned, Time now) {
  const auto& recycling = returned.recycling;
  Retired retired{.number = returned.queue->number(),
                  .how = Retirement::recycled,
                  .took = now - recycling.started(),
                  .reason = recycling.error() ? recycling.error()->what() : ""};
  if (recycling.error()) {
    const bool in_time = recycling.error()->code() != ErrorCode::timed_out;
    retired.how = in_time ? Retirement::refused : Retirement::drain_timed_out;
    ++(in_time ? counts_.refused : counts_.drain_timed_out);
    destroy(std::move(returned.queue), recycling.flushed() ? Leftovers::none : Leftovers::possible);
  } else if (idle_.size() >= settings_.initial) {
    retired.how = Retirement::surplus;
    ++counts_.surplus;
    destroy(std::move(returned.queue), Leftovers::none);
  } else {
    ++counts_.recycled;
    idle_.push_back(std::move(returned.queue));
  }
  return retired;
}

// A queue pair that could not be brought back leaves a place in the pool. If none can be made now, the next lease says
// why.
void RcPool::replace_lost() {
  try {
    while (counts().used() < std::min(settings_.initial, counts_.limit)) idle_.push_back(make());
  } catch (const Error& error) {
    log().info("an RC queue pair of {} is not replaced yet: {}", context_.name(), error.what());
  }
}

}  // namespace verbatim::qp
