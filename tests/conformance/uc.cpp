// Unreliable connections: SEND and WRITE with nobody who acknowledges.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class Unreliable : public ConformanceCase {
 protected:
  void SetUp() override { connect(IBV_QPT_UC); }
};

TEST_F(Unreliable, SendsArriveInOrder) {
  for (std::uint32_t i = 0; i < 16; ++i) {
    a.fill(i * 2000, 2000, i);
    b.receive(i, {b.piece(i * 2000, 2000)});
  }
  for (std::uint32_t i = 0; i < 16; ++i) a.post(send(100 + i, {a.piece(i * 2000, 2000)}));
  const std::vector<ibv_wc> received = b.received(16);
  const std::vector<ibv_wc> sent = a.sent(16);
  for (std::uint32_t i = 0; i < 16; ++i) {
    EXPECT_TRUE(completed(received[i], i, IBV_WC_RECV));
    EXPECT_EQ(received[i].byte_len, 2000u);
    EXPECT_TRUE(completed(sent[i], 100 + i, IBV_WC_SEND));
    EXPECT_TRUE(holds_pattern(b, i * 2000, 2000, i));
  }
}

TEST_F(Unreliable, ImmediatesArrive) {
  b.receive(1, {b.piece(0, 64)});
  a.post(send_with_immediate(2, {a.piece(0, 64)}, 321));
  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 1, IBV_WC_RECV));
  EXPECT_EQ(immediate_of(received), 321u);
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

TEST_F(Unreliable, WritesArrive) {
  a.fill(0, 5000, 1);
  b.receive(1, {});
  a.post({write(2, {a.piece(0, 5000)}, b, 100), write_with_immediate(3, {a.piece(0, 10)}, b, 8192, 4)});
  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 1, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(received.byte_len, 10u);
  EXPECT_EQ(immediate_of(received), 4u);
  EXPECT_TRUE(holds_pattern(b, 100, 5000, 1));
  const std::vector<ibv_wc> sent = a.sent(2);
  EXPECT_TRUE(completed(sent[0], 2, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(completed(sent[1], 3, IBV_WC_RDMA_WRITE));
}

TEST_F(Unreliable, MessageThatFindsNoReceiveIsDropped) {
  a.post(send(1, {a.piece(0, 3000)}));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_SEND));
  fabric->advance(5ms);
  b.receive(2, {b.piece(0, 64)});
  a.post(send(3, {a.piece(0, 20)}));
  EXPECT_EQ(b.received().byte_len, 20u);
  EXPECT_TRUE(completed(a.sent(), 3, IBV_WC_SEND));
  EXPECT_EQ(b.state(), IBV_QPS_RTS);
}

// The sender never learns; whether the receiver drops the packet or its QP fails is the device's choice.
TEST_F(Unreliable, WriteWithoutTheRightChangesNothing) {
  SendRequest bad = write(1, {a.piece(0, 64)}, b, 0);
  bad.rkey ^= 0x5a5a5a00;
  a.fill(0, 64, 1);
  a.post(bad);
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_RDMA_WRITE));
  fabric->advance(5ms);
  EXPECT_TRUE(holds_zeros(b, 0, 64));
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
  RecordProperty("responder_state", b.state());
}

// As above: the message is dropped or the receive fails.
TEST_F(Unreliable, MessageLongerThanTheReceiveDoesNotOverflowIt) {
  a.fill(0, 100, 1);
  b.receive(1, {b.piece(0, 99)});
  a.post(send(2, {a.piece(0, 100)}));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  fabric->advance(5ms);
  const Polled polled = b.endpoint->poll_cq(b.recv_cq, 1);
  if (polled.result == 1) {
    EXPECT_TRUE(failed(polled.completions[0], 1, length_error(b)));
  }
  EXPECT_TRUE(holds_zeros(b, 99, 100));
  RecordProperty("receive_failed", polled.result);
}

TEST_F(Unreliable, HasNoReads) {
  const Posted posted = a.endpoint->post_send(a.qp, {read(1, {a.piece(0, 64)}, b, 0)});
  if (posted.error == 0) {
    EXPECT_NE(a.sent().status, IBV_WC_SUCCESS);
  }
  RecordProperty("errno", posted.error);
}

TEST_F(Unreliable, SendsToNobodyComplete) {
  b.to(IBV_QPS_RESET);
  a.post(send(1, {a.piece(0, 64)}));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_SEND));
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
}

}  // namespace
}  // namespace verbatim::conformance
