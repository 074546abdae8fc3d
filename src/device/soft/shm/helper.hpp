// The thread that does a device's work while its application does not poll: executes what peers ask for, answers, lets
// timers run out. While the application polls it only looks now and then; while nothing happens it sleeps and costs
// nothing.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "device/soft/shm/shm_wire.hpp"

namespace verbatim::soft::shm {

class Helper {
 public:
  // `progress` takes the engine's lock, runs the engine until nothing is left to do, and returns when it wants to be
  // called next at the latest (MonotonicClock), or `never`. It must outlive the helper, and so must the wire.
  Helper(ShmWire& wire, std::function<Time()> progress);
  // Stops and joins; not under the engine's lock.
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // The application is about to sleep until it is told of an event: take over at once. Any thread, with or without the
  // engine's lock.
  void application_sleeps();

  // In a forked child, which has no such thread, before it makes any.
  void forked() { thread_.detach(); }

  // The engine has something due at `deadline`, of which the helper may not know. Any thread.
  void due_by(Time deadline) {
    if (deadline < wire_.plan()) [[unlikely]]
      look_again();
  }

 private:
  enum class Watch {
    looking_on,  // the application polls
    lingering,   // it does not, and packets come: one wake-up for each would be dear
    standing_by  // it does not, and none come, or it must hear of each at once
  };
  void run();
  Watch next_watch();
  Watch take_over(bool linger);
  void rest(Duration duration);
  void wait_standing_by();
  void look_again();
  void request_house_keeping_if_due();

  ShmWire& wire_;
  std::function<Time()> progress_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> application_sleeps_{false};
  // the thread's own
  std::uint64_t polls_seen_ = 0;
  bool in_event_mode_ = false;  // from application_sleeps() until it polls again
  Time next_ = never;
  Time house_kept_at_ = Time::min();
  std::thread thread_;
};

}  // namespace verbatim::soft::shm
