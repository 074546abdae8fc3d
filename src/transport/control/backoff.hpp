// Pauses between attempts: doubling up to a bound, each cut by up to half at random, so that many that failed together
// do not come back together.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "base/random.hpp"

namespace verbatim::transport::control {

class Backoff {
 public:
  Backoff(Duration first, Duration longest) : next_(first), longest_(longest) {}

  [[nodiscard]] Duration pause(Random& random) {
    const Duration full = next_;
    next_ = std::min(next_ * 2, longest_);
    return full - Duration(random.below(static_cast<std::uint64_t>(full.count() / 2) + 1));
  }

 private:
  Duration next_;
  Duration longest_;
};

}  // namespace verbatim::transport::control
