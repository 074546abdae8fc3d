// How a thread drives an engine and waits: it polls, sleeps, or does the one and then the other.
#pragma once

#include <chrono>

#include "base/clock.hpp"
#include "verbatim/config.hpp"

namespace verbatim::transport::host {

inline constexpr unsigned looks_per_clock = 128;  // that share a reading of the clock
inline constexpr Duration longest_sleep = std::chrono::seconds(1);

// step() makes progress and tells how much; sleep_until(Time) is called when there has been none for long enough.
// Until done() or the deadline; false: the deadline came first.
template <typename Step, typename Sleep, typename Done>
bool drive(const Clock& clock, const Config::Worker& how, Time deadline, Step step, Sleep sleep_until, Done done) {
  Time idle_since = clock.now();
  for (unsigned idle = 0; !done(); ++idle) {
    if (step() != 0) {
      idle = 0;
      continue;
    }
    if (idle % looks_per_clock != looks_per_clock - 1 && how.wait != WaitMode::event) continue;
    const Time now = clock.now();
    if (now >= deadline) return done();
    if (idle < looks_per_clock) idle_since = now;
    if (how.wait == WaitMode::poll) continue;
    if (how.wait == WaitMode::adaptive && now - idle_since < how.spin) continue;
    sleep_until(deadline);
    idle = 0;
  }
  return true;
}

}  // namespace verbatim::transport::host
