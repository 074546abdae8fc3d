// A message that finds no receive: RNR NAK, waiting, retrying, giving up.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class ReceiverNotReady : public ConformanceCase {};

TEST_F(ReceiverNotReady, SendWaitsForTheReceive) {
  connect();
  a.fill(0, 3000, 1);
  a.post(send(1, {a.piece(0, 3000)}));
  fabric->advance(20ms);
  EXPECT_TRUE(a.idle(a.send_cq));

  b.receive(2, {b.piece(0, 3000)});
  EXPECT_TRUE(completed(b.received(), 2, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_SEND));
  EXPECT_TRUE(holds_pattern(b, 0, 3000, 1));
}

TEST_F(ReceiverNotReady, OrderHoldsAcrossTheWait) {
  connect();
  for (std::uint32_t i = 0; i < 10; ++i) {
    a.fill(i * 100, 100, i);
    a.post(send(i, {a.piece(i * 100, 100)}));
  }
  for (std::uint32_t i = 0; i < 10; ++i) {
    b.receive(i, {b.piece(i * 100, 100)});
    fabric->advance(1ms);
  }
  const std::vector<ibv_wc> received = b.received(10);
  for (std::uint32_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(completed(received[i], i, IBV_WC_RECV));
    EXPECT_TRUE(holds_pattern(b, i * 100, 100, i));
  }
  EXPECT_EQ(a.sent(10).back().wr_id, 9u);
}

TEST_F(ReceiverNotReady, WriteWithImmediateWaitsToo) {
  connect();
  a.fill(0, 100, 2);
  a.post(write_with_immediate(1, {a.piece(0, 100)}, b, 0, 9));
  fabric->advance(5ms);
  EXPECT_TRUE(a.idle(a.send_cq));
  b.receive(2, {});
  EXPECT_TRUE(completed(b.received(), 2, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(holds_pattern(b, 0, 100, 2));
}

TEST_F(ReceiverNotReady, WithoutRetriesTheSendFailsAtOnce) {
  Route route;
  route.rnr_retries = 0;
  connect(IBV_QPT_RC, route);
  a.post({send(1, {a.piece(0, 8)}), send(2, {a.piece(0, 8)})});
  const std::vector<ibv_wc> ended = a.sent(2);
  EXPECT_TRUE(failed(ended[0], 1, IBV_WC_RNR_RETRY_EXC_ERR));
  EXPECT_TRUE(failed(ended[1], 2, IBV_WC_WR_FLUSH_ERR));
  EXPECT_TRUE(a.wait_for_state(IBV_QPS_ERR));
  // The receiver did nothing wrong.
  EXPECT_EQ(b.state(), IBV_QPS_RTS);
}

TEST_F(ReceiverNotReady, GivesUpAfterTheRetriesAndNotBeforeTheirTime) {
  Route route;
  route.rnr_retries = 3;
  route.rnr_timer = 20;  // code: 10.24 ms
  connect(IBV_QPT_RC, route);
  const Time start = fabric->now();
  a.post(send(1, {a.piece(0, 8)}));
  EXPECT_TRUE(failed(a.sent(), 1, IBV_WC_RNR_RETRY_EXC_ERR));
  EXPECT_GE(fabric->now() - start, 3 * std::chrono::microseconds(10'240));
}

// Each device has its own name for it.
TEST_F(ReceiverNotReady, IsCounted) {
  const auto count = [this] {
    std::uint64_t sum = 0;
    for (const Side* side : {&a, &b}) {
      for (const device::Counter& counter : side->endpoint->counters(port_number)) {
        if (counter.name.find("rnr") != std::string::npos) sum += counter.value;
      }
    }
    return sum;
  };
  connect();
  const std::uint64_t before = count();
  a.post(send(1, {a.piece(0, 8)}));
  EXPECT_TRUE(fabric->wait_until([&] { return count() > before; }, patience));
  b.receive(2, {b.piece(0, 8)});
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_SEND));
  EXPECT_TRUE(completed(b.received(), 2, IBV_WC_RECV));
}

}  // namespace
}  // namespace verbatim::conformance
