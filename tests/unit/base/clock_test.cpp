#include "base/clock.hpp"

#include <gtest/gtest.h>

#include "base/monotonic_clock.hpp"

namespace verbatim {
namespace {

using namespace std::chrono_literals;

TEST(VirtualClock, StandsUntilToldToGoOn) {
  VirtualClock clock;
  const auto start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(5us);
  EXPECT_EQ(clock.now() - start, 5us);
}

TEST(VirtualClock, NeverGoesBack) {
  VirtualClock clock;
  clock.advance_to(Time(10s));
  clock.advance_to(Time(3s));
  EXPECT_EQ(clock.now(), Time(10s));
}

TEST(MonotonicClock, NeverGoesBack) {
  const MonotonicClock clock;
  auto previous = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const auto now = clock.now();
    EXPECT_GE(now, previous);
    previous = now;
  }
  EXPECT_LT(previous, never);
}

}  // namespace
}  // namespace verbatim
