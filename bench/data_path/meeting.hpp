// Where both sides have come to the same point, without a message and without the kernel.
#pragma once

#include <chrono>

#include "shared_page.hpp"
#include "verbatim/error.hpp"

namespace verbatim::data_path {

// A side goes no longer than this without a sign of the other.
inline constexpr std::chrono::seconds patience{60};

// Turns of a loop that waits for no longer than that.
class Patience {
 public:
  // Throws Error, naming `what`, when it is over.
  void spend(const char* what) {
    constexpr unsigned turns_per_clock = 4096;
    if (++turns_ % turns_per_clock != 0 || std::chrono::steady_clock::now() < end_) return;
    throw Error(ErrorCode::timed_out, what);
  }

 private:
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + patience;
  unsigned turns_ = 0;
};

// `progress` is called until the other side is here too.
template <typename Progress>
void meet(SharedPage& page, unsigned side, Progress&& progress) {
  const std::uint64_t here = page.arrivals[side].count.fetch_add(1) + 1;
  Patience left;
  while (page.arrivals[1 - side].count.load() < here) {
    progress();
    left.spend("the other side does not come");
  }
}

}  // namespace verbatim::data_path
