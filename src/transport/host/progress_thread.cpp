#include "transport/host/progress_thread.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <future>

#include "base/error.hpp"
#include "base/signals_blocked.hpp"
#include "mem/cores.hpp"

namespace verbatim::transport::host {
namespace {

[[nodiscard]] Descriptor make_bell() {
  Descriptor bell = Descriptor::make([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!bell)
    throw Error(ErrorCode::no_space, "no descriptor for a progress thread; see the limit on open files (ulimit -n)");
  return bell;
}

}  // namespace

ProgressThread::ProgressThread(Engine& engine, int control_fd, const Clock& clock, const Config::Worker& how, int core)
    : engine_(engine),
      clock_(clock),
      how_(how),
      bell_(make_bell()),
      wake_up_({engine.completion_fd(), control_fd, bell_.get()}) {
  engine_.turns().share_with(*this);
  std::promise<void> pinned;
  std::future<void> result = pinned.get_future();
  try {
    const SignalsBlocked no_signals;
    thread_ = std::thread([this, core, pinned = std::move(pinned)]() mutable {
      try {
        mem::pin_this_thread(core);
      } catch (...) {
        return pinned.set_exception(std::current_exception());
      }
      pinned.set_value();
      run();
    });
    result.get();
  } catch (...) {
    if (thread_.joinable()) thread_.join();
    engine_.turns().share_no_more();
    throw;
  }
}

ProgressThread::~ProgressThread() {
  stop_.store(true);
  wake();
  thread_.join();
  engine_.turns().share_no_more();
}

void ProgressThread::run() noexcept {
  const auto step = [this] {
    unsigned events = 0;
    {
      const Turns::Look turn(engine_.turns());
      events = engine_.progress();
    }
    if (events != 0) tell_news();
    return events;
  };
  // A channel's state may have changed without an event.
  const auto rest = [this](Time) {
    tell_news();
    sleep();
  };
  (void)drive(clock_, how_, never, step, rest, [this] { return stop_.load(std::memory_order_relaxed); });
}

void ProgressThread::sleep() {
  Time until = never;
  {
    const Turns::Look turn(engine_.turns());
    if (!engine_.arm()) return;
    until = engine_.next_deadline();
    engine_.turns().goes_to_sleep();
  }
  if (!stop_.load())
    wake_up_.sleep(until == never ? longest_sleep : std::clamp(until - clock_.now(), Duration{}, longest_sleep));
  const Turns::Look turn(engine_.turns());
  engine_.turns().woke_up();
  engine_.wake();
  std::uint64_t rings = 0;
  (void)!::read(bell_.get(), &rings, sizeof(rings));
}

void ProgressThread::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(bell_.get(), &one, sizeof(one));  // full: it is ringing
}

// Whoever waits says so before he looks, and we look after the change: one of the two sees the other.
void ProgressThread::tell_news() {
  if (waiting_.fetch_add(0) == 0) return;
  { const std::lock_guard lock(mutex_); }
  news_.notify_all();
}

}  // namespace verbatim::transport::host
