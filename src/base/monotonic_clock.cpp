#include "base/monotonic_clock.hpp"

namespace verbatim {

Time MonotonicClock::now() const {
  return Time(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace verbatim
