#include "device/soft/shm/helper.hpp"

#include <pthread.h>

#include <algorithm>

#include "base/monotonic_clock.hpp"
#include "base/signals_blocked.hpp"
#include "device/soft/shm/futex.hpp"

namespace verbatim::soft::shm {
namespace {

// How often it is asked whether the application still polls: what may wait so long when it stops doing so.
constexpr Duration look_on_interval = std::chrono::milliseconds(2);
// What packets may wait for while they come one after another.
constexpr Duration linger_interval = std::chrono::microseconds(50);
constexpr Duration house_keeping_interval = std::chrono::milliseconds(100);
// Whatever went wrong with waking, it is noticed then.
constexpr Duration longest_sleep = std::chrono::seconds(1);
constexpr Duration longest_sleep_without_barriers = std::chrono::milliseconds(2);

Time now() {
  return MonotonicClock().now();
}

}  // namespace

Helper::Helper(ShmWire& wire, std::function<Time()> progress) : wire_(wire), progress_(std::move(progress)) {
  {
    const SignalsBlocked no_signals;
    thread_ = std::thread([this] { run(); });
  }
  pthread_setname_np(thread_.native_handle(), "verbatim-shm");
}

Helper::~Helper() {
  if (!thread_.joinable()) return;  // forked
  stopping_ = true;
  wake(wire_.sleep_word());
  thread_.join();
}

void Helper::application_sleeps() {
  application_sleeps_ = true;
  // One that stands by has taken over already.
  auto resting = static_cast<std::uint32_t>(Sleep::resting);
  if (wire_.sleep_word().compare_exchange_strong(resting, static_cast<std::uint32_t>(Sleep::awake))) {
    wake_by_system_call(wire_.sleep_word());
  }
}

void Helper::look_again() {
  wake_if_standing_by(wire_.sleep_word());
}

void Helper::run() {
  while (!stopping_) {
    switch (next_watch()) {
      case Watch::looking_on:
        rest(look_on_interval);
        break;
      case Watch::lingering:
        rest(linger_interval);
        break;
      case Watch::standing_by:
        wait_standing_by();
        break;
    }
  }
}

Helper::Watch Helper::next_watch() {
  const bool about_to_sleep = application_sleeps_.exchange(false);
  const std::uint64_t polls = wire_.polls();
  const bool polls_itself = polls != polls_seen_ && !about_to_sleep;
  polls_seen_ = polls;
  request_house_keeping_if_due();
  if (polls_itself) {
    in_event_mode_ = false;
    return Watch::looking_on;
  }
  in_event_mode_ |= about_to_sleep;
  return take_over(!in_event_mode_);
}

// Packets that came since the last time are a reason to linger, unless each must be told of at once.
Helper::Watch Helper::take_over(bool linger) {
  const std::uint64_t arrivals = wire_.arrivals();
  if (!linger) wire_.request(errand::stand_by);
  next_ = progress_();
  if (linger && wire_.arrivals() == arrivals) {
    wire_.request(errand::stand_by);
    next_ = progress_();
  }
  wire_.cancel(errand::stand_by);
  polls_seen_ = wire_.polls();
  const bool stands_by = wire_.sleep_word().load() == static_cast<std::uint32_t>(Sleep::standing_by);
  return stands_by ? Watch::standing_by : Watch::lingering;
}

void Helper::rest(Duration duration) {
  wire_.sleep_word().store(static_cast<std::uint32_t>(Sleep::resting));
  if (!stopping_ && !application_sleeps_) sleep_while(wire_.sleep_word(), Sleep::resting, duration);
  wire_.sleep_word().store(static_cast<std::uint32_t>(Sleep::awake));
}

void Helper::wait_standing_by() {
  const bool barriers = wire_.takes_part_in_barriers();
  const Time latest = now() + (barriers ? longest_sleep : longest_sleep_without_barriers);
  wire_.set_plan(next_);
  if (!stopping_) sleep_while(wire_.sleep_word(), Sleep::standing_by, std::min(next_, latest) - now());
  wire_.set_plan(never);
  wire_.sleep_word().store(static_cast<std::uint32_t>(Sleep::awake));
}

void Helper::request_house_keeping_if_due() {
  const Time time = now();
  if (time < house_kept_at_ + house_keeping_interval && house_kept_at_ != Time::min()) return;
  house_kept_at_ = time;
  wire_.request_house_keeping();
}

}  // namespace verbatim::soft::shm
