// A thread that makes progress for a worker, whatever the worker's own thread is busy with. They take turns at the
// engine.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/turns.hpp"
#include "transport/engine.hpp"
#include "transport/host/descriptor.hpp"
#include "transport/host/driving.hpp"
#include "transport/host/wake_up.hpp"

namespace verbatim::transport::host {

class ProgressThread final : private Turns::Sleeper {
 public:
  // Runs on hardware thread `core`, and waits as `how` says. Engine, descriptor and clock must outlive it. Throws
  // Error: permission (it may not run there), no_space (no descriptor is left).
  ProgressThread(Engine& engine, int control_fd, const Clock& clock, const Config::Worker& how, int core);
  ~ProgressThread() override;
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // For the worker's own thread, outside of its turns: until `done`, which may take turns, or the deadline. False: the
  // deadline came first.
  template <typename Done>
  bool wait_until(Done&& done, Time deadline) {
    const Time start = clock_.now();
    for (unsigned looks = 1; how_.wait != WaitMode::event; ++looks) {
      if (done()) return true;
      if (looks % looks_per_clock != 0) continue;
      const Time now = clock_.now();
      if (now >= deadline) return done();
      if (how_.wait == WaitMode::adaptive && now - start >= how_.spin) break;
    }
    std::unique_lock lock(mutex_);
    waiting_.fetch_add(1);
    bool is_done = done();
    for (Time now = clock_.now(); !is_done && now < deadline; now = clock_.now()) {
      news_.wait_for(lock, std::min(deadline - now, longest_sleep));
      is_done = done();
    }
    waiting_.fetch_sub(1);
    return is_done;
  }

 private:
  void wake() noexcept override;
  void run() noexcept;
  void sleep();
  void tell_news();

  Engine& engine_;
  const Clock& clock_;
  const Config::Worker how_;
  Descriptor bell_;  // an eventfd
  WakeUp wake_up_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable news_;
  std::atomic<unsigned> waiting_{0};  // for news
  std::thread thread_;
};

}  // namespace verbatim::transport::host
