// The engine's lock between real threads: nobody is inside together with another, whoever the bias favours and however
// often it changes. What it guards here is a plain number, so that ThreadSanitizer judges too.
#include "device/soft/verbs/engine_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace verbatim::soft {
namespace {

class EngineLocks : public ::testing::Test {
 protected:
  static constexpr std::uint64_t turns = 20'000;

  void enter_and_count() {
    const EngineEntry entry(lock);
    ++guarded;
  }
  void visit_and_count() {
    const EngineVisit visit(lock);
    ++guarded;
  }
  void set_biased(bool biased) {
    const EngineVisit visit(lock);
    lock.set_biased(biased);
    ++guarded;
  }
  // False, and says so, where the system has no membarrier.
  bool can_be_biased() {
    set_biased(true);
    const bool biased = lock.biased();
    guarded = 0;
    return biased;
  }
  template <typename Work>
  std::jthread repeat(Work work, std::uint64_t times = turns) {
    return std::jthread([work, times] {
      for (std::uint64_t i = 0; i < times; ++i) work();
    });
  }

  EngineLock lock;
  std::uint64_t guarded = 0;
};

TEST_F(EngineLocks, SharedByAll) {
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) threads.push_back(repeat([this] { enter_and_count(); }));
    threads.push_back(repeat([this] { visit_and_count(); }));
  }
  EXPECT_EQ(guarded, 4 * turns);
}

TEST_F(EngineLocks, OwnerOfTheBiasTakesNothing) {
  if (!can_be_biased()) GTEST_SKIP() << "no membarrier on this system";
  const bool took_lock = lock.enter();
  EXPECT_FALSE(took_lock);
  lock.leave(took_lock);
}

TEST_F(EngineLocks, VisitorsKeepOutTheOwnerOfTheBias) {
  if (!can_be_biased()) GTEST_SKIP() << "no membarrier on this system";
  {
    std::vector<std::jthread> threads;
    threads.push_back(repeat([this] { enter_and_count(); }));
    for (int i = 0; i < 2; ++i) threads.push_back(repeat([this] { visit_and_count(); }));
  }
  EXPECT_EQ(guarded, 3 * turns);
}

// A second thread gets objects of its own and gives them back again and again: the bias goes and comes while its owner
// is on the way in. The moment that matters is short, so there are many of them.
TEST_F(EngineLocks, BiasThatComesAndGoes) {
  if (!can_be_biased()) GTEST_SKIP() << "no membarrier on this system";
  constexpr std::uint64_t changes = 1'500'000;
  {
    std::vector<std::jthread> threads;
    threads.push_back(repeat([this] { enter_and_count(); }, changes));
    threads.push_back(repeat(
        [this] {
          set_biased(false);
          enter_and_count();
          set_biased(true);
        },
        changes));
  }
  EXPECT_EQ(guarded, 4 * changes);
}

// Whoever sets the bias is inside until its visit ends.
TEST_F(EngineLocks, NewOwnerOfTheBiasWaitsForTheVisitThatMadeItSo) {
  if (!can_be_biased()) GTEST_SKIP() << "no membarrier on this system";
  set_biased(false);
  std::atomic<bool> entered = false;
  std::jthread owner;
  {
    const EngineVisit visit(lock);
    lock.set_biased(true);
    owner = std::jthread([&] {
      const EngineEntry entry(lock);
      entered = true;
    });
    for (int i = 0; i < 10'000 && !entered; ++i) std::this_thread::yield();
    EXPECT_FALSE(entered);
  }
  owner.join();
  EXPECT_TRUE(entered);
}

}  // namespace
}  // namespace verbatim::soft
