#include "base/turns.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace verbatim {
namespace {

class CountingSleeper : public Turns::Sleeper {
 public:
  void wake() noexcept override { ++woken_; }
  [[nodiscard]] int woken() const { return woken_; }

 private:
  std::atomic<int> woken_{0};
};

TEST(TurnsTest, AreOneAtATimeAndFair) {
  constexpr int threads = 3;
  constexpr int rounds = 20'000;
  Turns turns;
  CountingSleeper sleeper;
  turns.share_with(sleeper);
  long count = 0;  // not atomic: that is the point
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        const Turns::Look turn(turns);
        ++count;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(count, long{threads} * rounds);
  EXPECT_EQ(sleeper.woken(), 0);
}

TEST(TurnsTest, OnlyACallWakesWhoSleeps) {
  Turns turns;
  CountingSleeper sleeper;
  { const Turns::Call alone(turns); }
  turns.share_with(sleeper);
  { const Turns::Call nobody_sleeps(turns); }
  EXPECT_EQ(sleeper.woken(), 0);
  turns.goes_to_sleep();
  { const Turns::Look look(turns); }
  EXPECT_EQ(sleeper.woken(), 0);
  { const Turns::Call call(turns); }
  EXPECT_EQ(sleeper.woken(), 1);
  turns.woke_up();
  { const Turns::Call awake(turns); }
  EXPECT_EQ(sleeper.woken(), 1);
}

}  // namespace
}  // namespace verbatim
