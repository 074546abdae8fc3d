// A QP is brought back in place: ERR, drained, RESET, INIT, RTR, RTS, with other packet numbers each time.
#include <set>

#include "base/random.hpp"
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class Recycle : public ConformanceCase {};

constexpr std::uint32_t depth = 32;
constexpr std::uint32_t message_bytes = 1500;

std::uint64_t id_of(std::uint32_t round, std::uint32_t index) {
  return (std::uint64_t{round} << 32) | index;
}

void start_traffic(const Side& side, std::uint32_t round) {
  for (std::uint32_t i = 0; i < depth; ++i) side.receive(id_of(round, i), {side.piece(32'768, message_bytes)});
}

// Exactly one end for each request of this round, in order, and none of an earlier one.
void expect_one_end_each(const std::vector<ibv_wc>& ended, std::uint32_t round) {
  for (std::uint32_t i = 0; i < depth; ++i) {
    EXPECT_EQ(ended[i].wr_id, id_of(round, i));
    EXPECT_TRUE(ended[i].status == IBV_WC_SUCCESS || ended[i].status == IBV_WC_WR_FLUSH_ERR ||
                ended[i].status == IBV_WC_RETRY_EXC_ERR)
        << ibv_wc_status_str(ended[i].status);
  }
}

TEST_F(Recycle, UnderTrafficEachRequestEndsOnceAndNoneReturns) {
  constexpr std::uint32_t rounds = 25;
  constexpr std::uint64_t seed = 20;
  Random random(seed);
  connect();
  const std::uint32_t number_of_a = a.qpn;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (const Side* side : {&a, &b}) start_traffic(*side, round);
    Side& victim = random.chance(0.5) ? a : b;
    const auto moment = static_cast<std::uint32_t>(random.below(depth));
    for (std::uint32_t i = 0; i < depth; ++i) {
      if (i == moment) victim.to(IBV_QPS_ERR);
      for (const Side* side : {&a, &b}) side->post(send(id_of(round, i), {side->piece(0, message_bytes)}));
    }
    for (Side* side : {&a, &b}) side->to(IBV_QPS_ERR);
    for (const Side* side : {&a, &b}) {
      expect_one_end_each(side->sent(depth), round);
      expect_one_end_each(side->received(depth), round);
    }

    for (Side* side : {&a, &b}) side->to(IBV_QPS_RESET);
    Route fresh;
    fresh.send_psn = static_cast<std::uint32_t>(random.below(1 << 24));
    fresh.receive_psn = static_cast<std::uint32_t>(random.below(1 << 24));
    connect_qps(fresh);
    for (const Side* side : {&a, &b}) {
      EXPECT_TRUE(side->idle(side->send_cq));
      EXPECT_TRUE(side->idle(side->recv_cq));
    }
  }
  EXPECT_EQ(a.qpn, number_of_a);

  // And it works as on the first day.
  a.fill(0, 5000, 1);
  b.receive(1, {b.piece(0, 5000)});
  a.post(send(2, {a.piece(0, 5000)}));
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  EXPECT_TRUE(holds_pattern(b, 0, 5000, 1));
}

TEST_F(Recycle, ResetForgetsWhatWasPosted) {
  connect();
  for (std::uint64_t i = 0; i < 10; ++i) a.receive(i, {a.piece(0, 64)});
  a.to(IBV_QPS_RESET);
  b.to(IBV_QPS_RESET);
  connect_qps();
  a.receive(100, {a.piece(0, 64)});
  b.post(send(1, {b.piece(0, 64)}));
  EXPECT_TRUE(completed(a.received(), 100, IBV_WC_RECV));
  EXPECT_TRUE(completed(b.sent(), 1, IBV_WC_SEND));
  EXPECT_TRUE(a.idle(a.recv_cq));
}

// RESET may take this QP's unpolled completions out of the CQ (devices that do so and ones that don't are both about),
// but never another QP's.
TEST_F(Recycle, ResetLeavesOtherQpsCompletionsAlone) {
  connect();
  Side first_of_a = a;
  Side first_of_b = b;
  for (Side* side : {&a, &b}) side->make_qp(side->qp_options());
  connect_qps();
  for (std::uint64_t i = 0; i < 5; ++i) {
    for (const Side* side : {&b, &first_of_b}) side->receive(i, {side->piece(0, 8)});
    first_of_a.post(send(100 + i, {a.piece(0, 8)}));
    a.post(send(200 + i, {a.piece(0, 8)}));
  }
  EXPECT_EQ(b.received(10).size(), 10u);  // all have arrived
  // One more round trip on each, so that their acknowledgements have, too.
  for (const Side* side : {&a, &first_of_a}) {
    side->post(with_flags(read(300, {side->piece(64, 8)}, b, 0), 0));
    fabric->advance(2ms);
  }
  first_of_a.to(IBV_QPS_RESET);

  std::set<std::uint64_t> of_the_other;
  const auto all_came = [&] {
    for (const ibv_wc& wc : a.endpoint->poll_cq(a.send_cq, 16).completions) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      if (wc.qp_num == a.qpn) of_the_other.insert(wc.wr_id);
    }
    return of_the_other.size() == 5;
  };
  EXPECT_TRUE(fabric->wait_until(all_came, patience));
  EXPECT_TRUE(a.idle(a.send_cq));
}

TEST_F(Recycle, OnePeerAloneHearsNothingFromBefore) {
  Route before;
  before.ack_timeout = 12;
  before.retries = 1;
  connect(IBV_QPT_RC, before);
  a.post(send(1, {a.piece(0, 64)}));  // waits for a receive
  b.to(IBV_QPS_RESET);
  Route after = before;
  after.send_psn = 0x700000;
  after.receive_psn = 0x500000;
  b.connect(a, after);
  b.receive(2, {b.piece(0, 64)});
  // a's packets have numbers of the old connection: far from what b expects now, so they are never taken for new ones.
  EXPECT_TRUE(failed(a.sent(), 1, IBV_WC_RETRY_EXC_ERR));
  EXPECT_TRUE(b.idle(b.recv_cq));
}

}  // namespace
}  // namespace verbatim::conformance
