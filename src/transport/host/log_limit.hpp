// For warnings that a stranger can provoke: one in a while, which says how many were left out.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.hpp"

namespace verbatim::transport::host {

class LogLimit {
 public:
  static constexpr Duration interval = std::chrono::seconds(10);

  // How many were left out since the last one that may be said; nothing if this one may not be.
  [[nodiscard]] std::optional<std::uint64_t> admit(Time now) {
    if (now < next_) {
      ++left_out_;
      return std::nullopt;
    }
    next_ = now + interval;
    return std::exchange(left_out_, 0);
  }

 private:
  Time next_ = Time::min();
  std::uint64_t left_out_ = 0;
};

}  // namespace verbatim::transport::host
