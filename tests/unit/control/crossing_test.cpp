// Which of two dials goes on: every order in which the two ends can learn of each other.
#include "transport/control/crossing.hpp"

#include <gtest/gtest.h>

namespace verbatim::transport::control {
namespace {

constexpr Identity low{10, 5};
constexpr Identity high{20, 1};
constexpr Session from_low{100};
constexpr Session from_high{200};
using Verdict = Crossing::Verdict;

class CrossingTest : public ::testing::Test {
 protected:
  Crossing at_low{low};
  Crossing at_high{high};
};

TEST_F(CrossingTest, WithoutADialOfOursARequestIsAccepted) {
  EXPECT_EQ(at_low.on_request(from_high, high).verdict, Verdict::accept);
  EXPECT_EQ(at_high.on_request(from_low, low).verdict, Verdict::accept);
}

TEST_F(CrossingTest, OfTwoRequestsUnderWayTheLowerOnesGoesOnAtBothEnds) {
  EXPECT_FALSE(at_low.on_identified(from_low, high));
  EXPECT_FALSE(at_high.on_identified(from_high, low));
  const auto seen_by_low = at_low.on_request(from_high, high);
  EXPECT_EQ(seen_by_low.verdict, Verdict::refuse);
  EXPECT_EQ(seen_by_low.dial, from_low);
  const auto seen_by_high = at_high.on_request(from_low, low);
  EXPECT_EQ(seen_by_high.verdict, Verdict::serve_dial);
  EXPECT_EQ(seen_by_high.dial, from_high);
}

TEST_F(CrossingTest, TheLoserWaitsIfItHearsOfTheWinnerFirst) {
  (void)at_high.on_identified(from_high, low);
  EXPECT_TRUE(at_high.on_crossed(from_high, from_low));
  const auto served = at_high.on_request(from_low, low);
  EXPECT_EQ(served.verdict, Verdict::serve_dial);
  EXPECT_EQ(served.dial, from_high);
}

TEST_F(CrossingTest, TheWorkerDecidesWithinOneProcess) {
  Crossing first(Identity{10, 1});
  (void)first.on_identified(from_low, Identity{10, 2});
  EXPECT_EQ(first.on_request(from_high, Identity{10, 2}).verdict, Verdict::refuse);
}

TEST_F(CrossingTest, ADialThatHasNotAskedYetTakesOverWhatCame) {
  for (Crossing* end : {&at_low, &at_high}) {
    const Identity peer = end == &at_low ? high : low;
    EXPECT_EQ(end->on_request(Session{7}, peer).verdict, Verdict::accept);
    EXPECT_EQ(end->on_identified(Session{8}, peer), Session{7});
    EXPECT_FALSE(end->on_identified(Session{9}, peer)) << "taken over once";
  }
}

TEST_F(CrossingTest, AnOpenChannelIsNotTakenOver) {
  EXPECT_EQ(at_low.on_request(from_high, high).verdict, Verdict::accept);
  at_low.on_opened(from_high);
  EXPECT_FALSE(at_low.on_identified(from_low, high));
}

TEST_F(CrossingTest, ADialThatWasAcceptedCrossesWithNothing) {
  for (Crossing* end : {&at_low, &at_high}) {
    const Identity peer = end == &at_low ? high : low;
    (void)end->on_identified(Session{8}, peer);
    end->forget(Session{8});
    EXPECT_EQ(end->on_request(Session{9}, peer).verdict, Verdict::accept);
  }
}

TEST_F(CrossingTest, OtherPeersDoNotCross) {
  (void)at_low.on_identified(from_low, high);
  (void)at_high.on_identified(from_high, low);
  const Identity third{30, 0};
  EXPECT_EQ(at_low.on_request(Session{7}, third).verdict, Verdict::accept);
  EXPECT_EQ(at_high.on_request(Session{7}, Identity{5, 0}).verdict, Verdict::accept);
  // Another worker of the same process is another peer.
  EXPECT_EQ(at_low.on_request(Session{9}, Identity{high.incarnation, 9}).verdict, Verdict::accept);
}

TEST_F(CrossingTest, ADialWinsOnce) {
  (void)at_low.on_identified(from_low, high);
  EXPECT_EQ(at_low.on_request(Session{1}, high).verdict, Verdict::refuse);
  EXPECT_EQ(at_low.on_request(Session{2}, high).verdict, Verdict::accept) << "two against one are two channels";
}

TEST_F(CrossingTest, ALoserWhoseWinnerServesAnotherDialDialsAgain) {
  (void)at_high.on_identified(Session{1}, low);
  (void)at_high.on_identified(Session{2}, low);
  EXPECT_EQ(at_high.on_request(from_low, low).dial, Session{1}) << "the oldest";
  EXPECT_FALSE(at_high.on_crossed(Session{2}, from_low));
}

TEST_F(CrossingTest, AWinnerServesTheDialThatWaitsForIt) {
  (void)at_high.on_identified(Session{1}, low);
  (void)at_high.on_identified(Session{2}, low);
  EXPECT_TRUE(at_high.on_crossed(Session{2}, from_low));
  EXPECT_EQ(at_high.on_request(from_low, low).dial, Session{2});
  EXPECT_EQ(at_high.on_request(Session{101}, low).dial, Session{1});
}

TEST_F(CrossingTest, ALateWordToALoserThatIsServedChangesNothing) {
  (void)at_high.on_identified(from_high, low);
  (void)at_high.on_request(from_low, low);
  EXPECT_FALSE(at_high.on_crossed(from_high, from_low));
  at_high.forget(from_high);
  EXPECT_FALSE(at_high.on_identified(Session{8}, low)) << "what serves a dial is not taken over by another";
}

TEST_F(CrossingTest, AWorkerThatDialsItselfHasTwoEnds) {
  EXPECT_FALSE(at_low.on_identified(from_low, low));
  EXPECT_EQ(at_low.on_request(from_low, low).verdict, Verdict::accept);
  EXPECT_FALSE(at_low.on_identified(Session{8}, low));
}

}  // namespace
}  // namespace verbatim::transport::control
