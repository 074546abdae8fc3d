// Ack timeouts and RNR timers, to the nanosecond of the virtual clock.
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration latency = microseconds(1);  // SimNetwork's own

constexpr Duration ack_timeout(std::uint8_t code) {
  return Duration(4096) * (std::int64_t{1} << code);
}

class Timers : public RcPair {
 protected:
  void reconnect_with(std::uint8_t timeout, std::uint8_t retry_cnt) {
    ConnectionSettings given = settings;
    given.timeout = timeout;
    given.retry_cnt = retry_cnt;
    reconnect(given);
  }
  void reconnect_with_rnr(std::uint8_t min_rnr_timer, std::uint8_t rnr_retry) {
    ConnectionSettings given = settings;
    given.timeout = 14;
    given.min_rnr_timer = min_rnr_timer;
    given.rnr_retry = rnr_retry;
    reconnect(given);
  }
};

TEST_F(Timers, GivesUpAfterAllTriesAtTheRightTime) {
  for (const std::uint8_t timeout : {1, 4, 8, 14}) {
    for (const std::uint8_t retry_cnt : {0, 1, 3, 7}) {
      reconnect_with(timeout, retry_cnt);
      a.fault({.fault = PacketFault::drop, .rate = 1});
      const std::uint64_t sent = a.counter("packets_sent");
      const Time posted = network.now();
      ASSERT_EQ(post_send(a, 1, 0, 10), 0);
      const ibv_wc wc = completion(a, seconds(10));
      EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
      EXPECT_EQ(network.now() - posted, (retry_cnt + 1) * ack_timeout(timeout))
          << "timeout " << +timeout << ", retries " << +retry_cnt;
      EXPECT_EQ(a.counter("packets_sent") - sent, retry_cnt + 1U) << "tries";
      EXPECT_EQ(a.state(), IBV_QPS_ERR);
      a.heal();
    }
  }
}

TEST_F(Timers, TriesAreCountedAnewAfterProgress) {
  reconnect_with(4, 1);
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_EQ(post_receive(b, i, 0, 100), 0);
    a.fault({.fault = PacketFault::drop, .nth = 1});
    ASSERT_EQ(post_send(a, i, 0, 10), 0);
    EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
    EXPECT_EQ(completion(b).status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(a.counter("timeouts"), 5U);
}

TEST_F(Timers, TheTimerRestartsWithEachAcknowledgement) {
  reconnect_with(4, 0);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(post_receive(b, i, 0, 100), 0);
  // The first ACK comes after 50 µs, the others 50 µs later: more than one timeout after the post, never more than one
  // after the ACK before.
  b.fault({.fault = PacketFault::delay, .packets = PacketClass::acknowledge, .rate = 1, .delay = microseconds(50)});
  ASSERT_EQ(post_send(a, 0, 0, 10), 0);
  network.run_for(microseconds(40));
  ASSERT_EQ(post_send(a, 1, 0, 10), 0);
  const auto done = completions(a, 2);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[1].status, IBV_WC_SUCCESS);
  EXPECT_EQ(a.counter("timeouts"), 0U);
}

TEST_F(Timers, TimeoutZeroNeverFires) {
  reconnect_with(0, 3);
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(post_receive(b, i, 0, 100), 0);
  a.fault({.fault = PacketFault::drop, .nth = 1});
  ASSERT_EQ(post_send(a, 1, 0, 10), 0);
  EXPECT_FALSE(network.step()) << "nothing is due, ever";
  network.run_for(seconds(3600));
  EXPECT_TRUE(polled(a).empty());
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
  // What follows shows the gap.
  ASSERT_EQ(post_send(a, 2, 0, 10), 0);
  EXPECT_EQ(completions(a, 2).size(), 2U);
  EXPECT_EQ(a.counter("timeouts"), 0U);
}

TEST_F(Timers, QueuePairsWaitEachForItsOwnTime) {
  // A second queue pair of a, connected to nobody that answers.
  Side other = std::move(b);
  b = {};
  ibv_qp* const first = a.qp;
  a.qp = make_queue_pair(a);
  ASSERT_NE(a.qp, nullptr);
  settings.timeout = 10;
  settings.retry_cnt = 0;
  to_init(a);
  to_rtr(a, other, settings.psn_b);
  to_rts(a, settings.psn_a);
  ibv_qp* const second = a.qp;
  a.fault({.fault = PacketFault::drop, .rate = 1});
  const Time posted = network.now();
  ASSERT_EQ(post_send(a, 2, 0, 10), 0);  // one timeout of code 10
  a.qp = first;
  ASSERT_EQ(post_send(a, 1, 0, 10), 0);  // four of code 4
  EXPECT_EQ(completion(a).wr_id, 1U);
  EXPECT_EQ(network.now() - posted, 4 * ack_timeout(4));
  EXPECT_EQ(completion(a).wr_id, 2U);
  EXPECT_EQ(network.now() - posted, ack_timeout(10));
  EXPECT_EQ(a.context->destroy_qp(second), 0);
  b = std::move(other);
}

// -- receiver not ready ----------------------------------------------------------------------------------------------

TEST_F(Timers, RnrTimerIsHonoured) {
  const struct {
    std::uint8_t code;
    Duration wait;
  } timers[] = {{1, microseconds(10)}, {12, microseconds(640)}, {20, microseconds(10240)}, {0, microseconds(655360)}};
  for (const auto& timer : timers) {
    reconnect_with_rnr(timer.code, 1);
    const Time posted = network.now();
    ASSERT_EQ(post_send(a, 1, 0, 10), 0);
    network.run_for(3 * latency);  // the NAK is back
    ASSERT_EQ(post_receive(b, 2, 0, 100), 0);
    EXPECT_EQ(completion(b).status, IBV_WC_SUCCESS);
    EXPECT_EQ(network.now() - posted, latency + latency + timer.wait + latency) << "code " << +timer.code;
    EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(b.counter("rnr_nak_sent"), std::size(timers));
  EXPECT_EQ(a.counter("rnr_nak_received"), std::size(timers));
  EXPECT_EQ(a.counter("timeouts"), 0U);
}

TEST_F(Timers, RnrRetriesAreCounted) {
  std::uint64_t naks = 0;
  for (const std::uint8_t rnr_retry : {0, 1, 3, 6}) {
    reconnect_with_rnr(12, rnr_retry);
    const Time posted = network.now();
    ASSERT_EQ(post_send(a, 1, 0, 10), 0);
    EXPECT_EQ(completion(a).status, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(network.now() - posted, 2 * latency + rnr_retry * (microseconds(640) + 2 * latency));
    naks += rnr_retry + 1U;
    EXPECT_EQ(b.counter("rnr_nak_sent"), naks);
    EXPECT_EQ(a.state(), IBV_QPS_ERR);
  }
}

TEST_F(Timers, RnrRetrySevenIsForEver) {
  reconnect_with_rnr(12, 7);
  ASSERT_EQ(post_send(a, 1, 0, 10), 0);
  network.run_for(seconds(2));
  EXPECT_GT(b.counter("rnr_nak_sent"), 3000U);
  EXPECT_TRUE(polled(a).empty());
  ASSERT_EQ(post_receive(b, 2, 0, 100), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
}

TEST_F(Timers, RnrWaitsDoNotUseUpOtherTries) {
  ConnectionSettings given = settings;
  given.retry_cnt = 0;
  given.rnr_retry = 7;
  given.min_rnr_timer = 14;  // 1.28 ms, twenty ack timeouts
  reconnect(given);
  ASSERT_EQ(post_send(a, 1, 0, 10), 0);
  network.run_for(milliseconds(10));
  EXPECT_TRUE(polled(a).empty());
  ASSERT_EQ(post_receive(b, 2, 0, 100), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(a.counter("timeouts"), 0U);
}

// What waits behind a refused message comes after it, in order.
TEST_F(Timers, OrderHoldsAcrossAnRnrWait) {
  reconnect_with_rnr(1, 7);
  for (std::uint64_t i = 0; i < 20; ++i) {
    a.set_word(8 * i, i);
    ASSERT_EQ(post_send(a, i, 8 * i, 8), 0);
  }
  for (std::uint64_t i = 0; i < 20; ++i) {
    network.run_for(microseconds(25));
    ASSERT_EQ(post_receive(b, i, 4096 + 8 * i, 8), 0);
  }
  const auto received = completions(b, 20);
  ASSERT_EQ(received.size(), 20U);
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(b.word(4096 + 8 * i), i);
  }
  EXPECT_EQ(completions(a, 20).size(), 20U);
}

}  // namespace
}  // namespace verbatim::soft::testing
