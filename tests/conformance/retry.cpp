// A peer that does not answer: the acknowledgement times out, the packet is repeated, the request fails.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

constexpr std::uint8_t ack_timeout = 12;  // code: 4.096 us * 2^12
constexpr Duration one_timeout = std::chrono::nanoseconds(4096) * (1 << ack_timeout);
constexpr std::uint8_t retries = 2;
// A device may wait up to four times the timeout (specification, volume 1, 9.7.6.1.3); the rest is for slow machines.
constexpr Duration longest = 4 * (retries + 1) * one_timeout + 3s;

class SilentPeer : public ConformanceCase {
 protected:
  static Route impatient() {
    Route route;
    route.ack_timeout = ack_timeout;
    route.retries = retries;
    return route;
  }

  void expect_to_give_up() {
    const Time start = fabric->now();
    a.post({send(1, {a.piece(0, 64)}), send(2, {a.piece(0, 64)})});
    const std::vector<ibv_wc> ended = a.sent(2);
    const Duration taken = fabric->now() - start;
    EXPECT_TRUE(failed(ended[0], 1, IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(failed(ended[1], 2, IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(a.wait_for_state(IBV_QPS_ERR));
    EXPECT_GE(taken, retries * one_timeout);
    EXPECT_LE(taken, longest);
  }
};

TEST_F(SilentPeer, ThatNeverBecameReadyToReceive) {
  for (Side* side : {&a, &b}) {
    side->make_qp(side->qp_options());
    side->make_region(4096);
  }
  b.to_init();
  b.receive(1, {b.piece(0, 64)});
  a.connect(b, impatient());
  expect_to_give_up();
  EXPECT_TRUE(b.idle(b.recv_cq));
}

TEST_F(SilentPeer, ThatWasDestroyed) {
  connect(IBV_QPT_RC, impatient());
  EXPECT_EQ(b.endpoint->destroy_qp(b.qp), 0);
  expect_to_give_up();
}

TEST_F(SilentPeer, ThatWentToReset) {
  connect(IBV_QPT_RC, impatient());
  b.to(IBV_QPS_RESET);
  expect_to_give_up();
}

TEST_F(SilentPeer, ThatWentToError) {
  connect(IBV_QPT_RC, impatient());
  b.to(IBV_QPS_ERR);
  expect_to_give_up();
}

TEST_F(SilentPeer, ToAWrite) {
  connect(IBV_QPT_RC, impatient());
  b.to(IBV_QPS_ERR);
  a.fill(0, 5000, 1);
  a.post(write(1, {a.piece(0, 5000)}, b, 0));
  EXPECT_TRUE(failed(a.sent(), 1, IBV_WC_RETRY_EXC_ERR));
  EXPECT_TRUE(holds_zeros(b, 0, 5000));
}

TEST_F(SilentPeer, ToARead) {
  connect(IBV_QPT_RC, impatient());
  b.to(IBV_QPS_ERR);
  a.post(read(1, {a.piece(0, 5000)}, b, 0));
  EXPECT_TRUE(failed(a.sent(), 1, IBV_WC_RETRY_EXC_ERR));
}

// A QP receives from RTR on, and answers with what it needs to: it does not have to be able to send.
TEST_F(SilentPeer, IsNotOneThatIsReadyToReceiveOnly) {
  for (Side* side : {&a, &b}) {
    side->make_qp(side->qp_options());
    side->make_region(4096);
  }
  b.to_init();
  b.to_rtr(a, mirrored(impatient()));
  a.connect(b, impatient());
  b.fill(1000, 100, 1);
  b.receive(1, {b.piece(0, 64)});
  a.post({send(2, {a.piece(0, 64)}), read(3, {a.piece(1000, 100)}, b, 1000)});
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  const std::vector<ibv_wc> done = a.sent(2);
  EXPECT_TRUE(completed(done[0], 2, IBV_WC_SEND));
  EXPECT_TRUE(completed(done[1], 3, IBV_WC_RDMA_READ));
  EXPECT_TRUE(holds_pattern(a, 1000, 100, 1));
}

}  // namespace
}  // namespace verbatim::conformance
