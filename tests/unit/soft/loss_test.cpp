// Thousands of messages while packets are lost, repeated, late and damaged at random: each arrives once, in order, word
// for word.
#include <string>

#include "unit/soft/traffic.hpp"

namespace verbatim::soft::testing {
namespace {

struct Weather {
  int loss_percent;
  std::uint64_t seed;
};

class Loss : public RcPair, public ::testing::WithParamInterface<Weather> {
 protected:
  static constexpr std::uint64_t messages = 2000;  // each way
  Loss() : RcPair(SimNetwork::Options{.seed = GetParam().seed}) {
    settings.retry_cnt = 7;
    settings.rnr_retry = 7;
    settings.timeout = 5;
  }
};

TEST_P(Loss, EachMessageArrivesOnceInOrderWordForWord) {
  for (Side* side : {&a, &b}) side->fault({.fault = PacketFault::drop, .rate = GetParam().loss_percent / 100.0});
  Traffic traffic(*this, messages, GetParam().seed);
  traffic.run();
  EXPECT_GT(a.counter("retransmits"), messages * static_cast<unsigned>(GetParam().loss_percent) / 100);
  EXPECT_GT(a.counter("sequence_nak_sent") + a.counter("timeouts"), 0U);
}

TEST_P(Loss, WithEveryOtherFaultToo) {
  for (Side* side : {&a, &b}) side->control().set_faults(everything_goes_wrong(GetParam().loss_percent / 500.0));
  Traffic traffic(*this, messages, GetParam().seed);
  traffic.run();
  EXPECT_GT(a.counter("bad_packets"), 0U);
  EXPECT_GT(b.counter("bad_packets"), 0U);
}

// Faults come and go while messages travel, and with them the trains.
TEST_P(Loss, ThatComesAndGoes) {
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (Side* side : {&a, &b}) side->fault({.fault = PacketFault::drop, .rate = GetParam().loss_percent / 100.0});
    Traffic(*this, 100, GetParam().seed + round).run();
    for (Side* side : {&a, &b}) side->heal();
    const std::uint64_t retransmits = a.counter("retransmits") + b.counter("retransmits");
    Traffic(*this, 100, GetParam().seed + round).run();
    EXPECT_EQ(a.counter("retransmits") + b.counter("retransmits"), retransmits) << "sent again without need";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Loss,
                         ::testing::Values(Weather{1, 1}, Weather{1, 2}, Weather{5, 3}, Weather{5, 4}, Weather{10, 5},
                                           Weather{10, 6}, Weather{20, 7}, Weather{20, 8}),
                         [](const auto& weather) {
                           return std::to_string(weather.param.loss_percent) + "percentSeed" +
                                  std::to_string(weather.param.seed);
                         });

}  // namespace
}  // namespace verbatim::soft::testing
