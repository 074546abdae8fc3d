#include "base/ids.hpp"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

constexpr std::uint32_t last = 0xffffff;

TEST(Psn, HasTwentyFourBits) {
  EXPECT_EQ(Psn(last).value(), last);
  EXPECT_EQ(Psn(last + 1).value(), 0u);
  EXPECT_EQ(Psn(0xff000001).value(), 1u);
}

TEST(Psn, StepsAcrossTheWrap) {
  EXPECT_EQ(Psn(last).next(), Psn(0));
  EXPECT_EQ(Psn(0).previous(), Psn(last));
  EXPECT_EQ(Psn(last - 1).plus(4), Psn(2));
  EXPECT_EQ(Psn(2).minus(4), Psn(last - 1));
  EXPECT_EQ(Psn(5).plus(last + 1), Psn(5));
}

TEST(Psn, MeasuresTheShorterWay) {
  EXPECT_EQ(Psn(5).distance_from(Psn(3)), 2);
  EXPECT_EQ(Psn(3).distance_from(Psn(5)), -2);
  EXPECT_EQ(Psn(1).distance_from(Psn(last)), 2);
  EXPECT_EQ(Psn(last).distance_from(Psn(1)), -2);
  EXPECT_EQ(Psn(Psn::half_range - 1).distance_from(Psn(0)), Psn::half_range - 1);
  EXPECT_EQ(Psn(Psn::half_range).distance_from(Psn(0)), -Psn::half_range);
}

TEST(Psn, OrdersAcrossTheWrap) {
  EXPECT_TRUE(Psn(last).before(Psn(0)));
  EXPECT_FALSE(Psn(0).before(Psn(last)));
  EXPECT_FALSE(Psn(7).before(Psn(7)));
  EXPECT_TRUE(Psn(7).at_or_before(Psn(7)));
  EXPECT_TRUE(Psn(last).at_or_before(Psn(1)));
  EXPECT_FALSE(Psn(1).at_or_before(Psn(last)));
}

TEST(Psn, AddingAndMeasuringAgreeEverywhere) {
  for (std::uint32_t start = last - 100; start != last + 100; ++start) {
    for (const std::int32_t step : {0, 1, 99, 1 << 20, Psn::half_range - 1}) {
      const auto ahead = Psn(start).plus(static_cast<std::uint32_t>(step));
      EXPECT_EQ(ahead.distance_from(Psn(start)), step);
      EXPECT_EQ(ahead.minus(static_cast<std::uint32_t>(step)), Psn(start));
    }
  }
}

TEST(Ids, OfTheSameKindAreCompared) {
  EXPECT_LT(Qpn{1}, Qpn{2});
  EXPECT_EQ(LKey{3}, LKey{3});
  EXPECT_NE(RKey{3}, RKey{4});
  EXPECT_LT(PortNumber{1}, PortNumber{2});
}

}  // namespace
}  // namespace verbatim
