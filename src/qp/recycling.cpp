#include "qp/recycling.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/units.hpp"
#include "qp/device_failure.hpp"

namespace verbatim::qp {

const char* to_string(RecyclingState state) noexcept {
  switch (state) {
    case RecyclingState::draining_both:
      return "draining both queues";
    case RecyclingState::draining_sends:
      return "draining the send queue";
    case RecyclingState::draining_receives:
      return "draining the receive queue";
    case RecyclingState::drained:
      return "drained";
    case RecyclingState::in_init:
      return "in INIT";
    case RecyclingState::failed:
      return "failed";
  }
  return "unknown";
}

Recycling::Recycling(ReliableQueue& queue, std::uint32_t round, Time now, Duration drain_limit)
    : queue_(&queue), started_(now), drain_limit_(drain_limit), round_(round), state_(start()) {}

RecyclingState Recycling::start() {
  const auto to_error = to_state(IBV_QPS_ERR);
  if (auto error = queue_->queue_pair().try_modify(to_error)) return fail(std::move(*error));
  if (const int problem = queue_->post_markers(round_)) {
    return fail({ErrorCode::device_failure, fmt::format("markers of the drain of queue pair {:#x}: {}",
                                                        queue_->number().value, words_of(problem))});
  }
  if (auto error = queue_->queue_pair().try_modify(to_error)) return fail(std::move(*error));
  return RecyclingState::draining_both;
}

bool Recycling::on_completion(const WorkCompletion& completion) {
  if (completion.id.kind != WorkKind::drain || completion.id.epoch != round_ || completion.qpn != queue_->number())
    return false;
  const bool of_sends = completion.id.slot == ReliableQueue::send_marker;
  switch (state_) {
    case RecyclingState::draining_both:
      state_ = of_sends ? RecyclingState::draining_receives : RecyclingState::draining_sends;
      break;
    case RecyclingState::draining_sends:
      if (of_sends) state_ = RecyclingState::drained;
      break;
    case RecyclingState::draining_receives:
      if (!of_sends) state_ = RecyclingState::drained;
      break;
    case RecyclingState::drained:
    case RecyclingState::in_init:
    case RecyclingState::failed:
      break;
  }
  return true;
}

RecyclingState Recycling::progress(Time now) {
  switch (state_) {
    case RecyclingState::draining_both:
    case RecyclingState::draining_sends:
    case RecyclingState::draining_receives:
      if (now >= deadline()) state_ = fail(timed_out());
      break;
    case RecyclingState::drained:
      state_ = back_to_init();
      break;
    case RecyclingState::in_init:
    case RecyclingState::failed:
      break;
  }
  return state_;
}

RecyclingState Recycling::back_to_init() {
  flushed_ = true;
  auto& queue_pair = queue_->queue_pair();
  if (auto error = queue_pair.try_modify(to_state(IBV_QPS_RESET))) return fail(std::move(*error));
  queue_->forget_posted();
  try {
    queue_pair.modify(queue_pair.reconnect_to_init());
  } catch (const Error& error) {
    return fail(error);
  }
  return RecyclingState::in_init;
}

Error Recycling::timed_out() const {
  return {ErrorCode::timed_out, fmt::format("queue pair {:#x} was still {} after the drain limit of {}",
                                            queue_->number().value, to_string(state_), format_duration(drain_limit_))};
}

RecyclingState Recycling::fail(Error error) {
  error_ = std::move(error);
  return RecyclingState::failed;
}

}  // namespace verbatim::qp
