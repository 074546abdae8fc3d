#include "base/random.hpp"

#include <gtest/gtest.h>

#include <array>

namespace verbatim {
namespace {

TEST(Random, ReplaysFromItsSeed) {
  Random first(42);
  Random second(42);
  Random other(43);
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    const auto value = first.bits();
    EXPECT_EQ(value, second.bits());
    differs |= value != other.bits();
  }
  EXPECT_TRUE(differs);
}

// The C++ standard fixes the 10,000th value of this engine from its default seed ([rand.predef]), so a seed
// means the same run with every library.
TEST(Random, MeansTheSameWithEveryLibrary) {
  Random random(5489);
  for (int i = 1; i < 10000; ++i) (void)random.bits();
  EXPECT_EQ(random.bits(), 9981545732273789042u);
}

TEST(Random, StaysBelowItsBoundAndReachesEveryValue) {
  Random random(1);
  std::array<int, 7> seen{};
  for (int i = 0; i < 7000; ++i) ++seen.at(random.below(7));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Random, ChanceKeepsItsRate) {
  Random random(1);
  int hits = 0;
  for (int i = 0; i < 10000; ++i) {
    EXPECT_FALSE(random.chance(0));
    EXPECT_TRUE(random.chance(1));
    hits += random.chance(0.25) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 2500, 200);
}

}  // namespace
}  // namespace verbatim
