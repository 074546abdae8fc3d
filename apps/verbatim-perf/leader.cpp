#include "leader.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "stopwatch.hpp"
#include "yardstick.hpp"

namespace verbatim::perf {
namespace {

constexpr unsigned max_corrections = 5;

}  // namespace

Answer Leader::ask(const Order& order) {
  peer_.tell(encode(order));
  Answer answer = decode_answer(peer_.hear(patience));
  if (!answer.problem.empty()) throw Error(ErrorCode::device_failure, "the other side: " + answer.problem);
  return answer;
}

Measured Leader::run(std::uint64_t iterations) {
  const Point& point = exchange_->point();
  exchange_->begin_run(iterations);
  (void)ask({.ask = Ask::run, .point = point, .iterations = iterations});
  before_ = peer_.use();
  Measured measured = sides_of(point.test).lead(*exchange_, iterations);
  after_ = peer_.use();
  return measured;
}

Leader::Pace Leader::warm_up() {
  Pace pace{whole_iterations(exchange_->point(), 1), 0};
  for (;;) {
    pace.elapsed_ns = run(pace.iterations).elapsed_ns;
    if (pace.elapsed_ns >= static_cast<double>(options_.warm_up.count()) || pace.iterations > max_iterations / 2) break;
    pace.iterations *= 2;
  }
  return pace;
}

Measured Leader::run_for(Duration duration, Pace pace) {
  Measured measured;
  for (unsigned correction = 0; correction < max_corrections; ++correction) {
    pace.iterations = iterations_for(exchange_->point(), duration, pace.iterations, pace.elapsed_ns);
    measured = run(pace.iterations);
    pace.elapsed_ns = measured.elapsed_ns;
    if (2 * pace.elapsed_ns >= static_cast<double>(duration.count()) || pace.iterations >= max_iterations) break;
  }
  return measured;
}

PointResult Leader::measure(const Point& point) {
  exchange_.emplace(peer_, point);
  exchange_->set_remote(ask({.ask = Ask::point, .point = point, .buffers = exchange_->buffers()}).buffers);
  const Pace pace = warm_up();
  Measured measured =
      options_.iterations ? run(whole_iterations(point, *options_.iterations)) : run_for(options_.duration, pace);
  const SideUse there = ask({.ask = Ask::report, .point = point}).use;
  if (exchange_->mismatch()) {
    throw Error(ErrorCode::device_failure,
                fmt::format("{} of {} bytes, wrong payload here: {}", traits(point.test).name, point.bytes,
                            to_string(*exchange_->mismatch())));
  }
  const double ns_per_sample = ns_per_tick() * sides_of(point.test).latency_scale;
  PointResult result{.point = point,
                     .messages = measured.messages,
                     .operations = measured.operations,
                     .elapsed_ns = measured.elapsed_ns,
                     .latency_ns = distribution(measured.round_trips, ns_per_sample),
                     .here = after_ - before_,
                     .there = there,
                     .yardstick = std::nullopt};
  if (lines_ != nullptr) result.yardstick = hold_yardstick(point);
  return result;
}

Yardstick Leader::hold_yardstick(const Point& point) {
  peer_.tell(encode(Order{.ask = Ask::yardstick, .point = point, .iterations = handover_round_trips}));
  const double handover = handover_ns(*lines_, 0, handover_round_trips, look_after_);
  return {.handover_ns = handover, .memcpy_bytes_per_second = memcpy_bandwidth(point.bytes)};
}

void Leader::finish(const std::string& problem) {
  peer_.tell(encode(Order{.ask = Ask::finish, .problem = problem}));
}

}  // namespace verbatim::perf
