// SEND and SEND_WITH_IMM on a reliable connection.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class SendReceive : public ConformanceCase {};

TEST_F(SendReceive, DeliversAMessage) {
  connect();
  a.fill(0, 100, 7);
  b.receive(11, {b.piece(512, 100)});
  a.post(send(22, {a.piece(0, 100)}));

  EXPECT_TRUE(completed(a.sent(), 22, IBV_WC_SEND));
  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 11, IBV_WC_RECV));
  EXPECT_EQ(received.byte_len, 100u);
  EXPECT_EQ(received.qp_num, b.qpn);
  EXPECT_EQ(received.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_TRUE(holds_pattern(b, 512, 100, 7));
}

TEST_F(SendReceive, CompletionNamesItsOwnQp) {
  connect();
  b.receive(1, {b.piece(0, 8)});
  a.post(send(2, {a.piece(0, 8)}));
  EXPECT_EQ(a.sent().qp_num, a.qpn);
  EXPECT_EQ(b.received().qp_num, b.qpn);
}

TEST_F(SendReceive, ImmediateArrivesInNetworkOrder) {
  connect();
  b.receive(1, {b.piece(0, 64)});
  a.post(send_with_immediate(2, {a.piece(0, 64)}, 0xdeadbeef));

  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 1, IBV_WC_RECV));
  EXPECT_EQ(received.wc_flags & IBV_WC_WITH_IMM, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(immediate_of(received), 0xdeadbeef);
}

TEST_F(SendReceive, ShorterMessageLeavesTheRestOfTheBufferAlone) {
  connect();
  a.fill(0, 10, 3);
  b.receive(1, {b.piece(0, 4096)});
  a.post(send(2, {a.piece(0, 10)}));

  EXPECT_EQ(b.received().byte_len, 10u);
  EXPECT_TRUE(holds_pattern(b, 0, 10, 3));
  EXPECT_TRUE(holds_zeros(b, 10, 4086));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

TEST_F(SendReceive, NoPiecesIsAnEmptyMessage) {
  connect();
  b.receive(1, {});
  b.receive(2, {b.piece(0, 64)});
  a.post(send(3, {}));
  a.post(send_with_immediate(4, {}, 99));

  const std::vector<ibv_wc> sent = a.sent(2);
  EXPECT_TRUE(completed(sent[0], 3, IBV_WC_SEND));
  EXPECT_TRUE(completed(sent[1], 4, IBV_WC_SEND));
  const std::vector<ibv_wc> received = b.received(2);
  EXPECT_TRUE(completed(received[0], 1, IBV_WC_RECV));
  EXPECT_EQ(received[0].byte_len, 0u);
  EXPECT_TRUE(completed(received[1], 2, IBV_WC_RECV));
  EXPECT_EQ(received[1].byte_len, 0u);
  EXPECT_EQ(immediate_of(received[1]), 99u);
  EXPECT_TRUE(holds_zeros(b, 0, 64));
}

TEST_F(SendReceive, ReceivesAreUsedInTheOrderTheyWerePosted) {
  connect();
  constexpr std::uint32_t count = 32;
  for (std::uint32_t i = 0; i < count; ++i) {
    a.fill(i * 64, 64, i);
    b.receive(100 + i, {b.piece(i * 64, 64)});
  }
  for (std::uint32_t i = 0; i < count; ++i) a.post(send(200 + i, {a.piece(i * 64, 64)}));

  const std::vector<ibv_wc> received = b.received(count);
  const std::vector<ibv_wc> sent = a.sent(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    EXPECT_TRUE(completed(received[i], 100 + i, IBV_WC_RECV));
    EXPECT_TRUE(completed(sent[i], 200 + i, IBV_WC_SEND));
    EXPECT_TRUE(holds_pattern(b, i * 64, 64, i));
  }
}

TEST_F(SendReceive, BothDirectionsAtOnce) {
  Route route;
  route.send_psn = 0x123456;
  route.receive_psn = 0xabcdef;
  connect(IBV_QPT_RC, route);
  constexpr std::uint32_t count = 20;
  constexpr std::uint32_t bytes = 1500;
  a.fill(0, bytes, 1);
  b.fill(0, bytes, 2);
  for (std::uint32_t i = 0; i < count; ++i) {
    a.receive(i, {a.piece(4096, bytes)});
    b.receive(i, {b.piece(4096, bytes)});
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    a.post(send(i, {a.piece(0, bytes)}));
    b.post(send(i, {b.piece(0, bytes)}));
  }

  for (const Side* side : {&a, &b}) {
    const std::vector<ibv_wc> received = side->received(count);
    const std::vector<ibv_wc> sent = side->sent(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_TRUE(completed(received[i], i, IBV_WC_RECV));
      EXPECT_TRUE(completed(sent[i], i, IBV_WC_SEND));
    }
  }
  EXPECT_TRUE(holds_pattern(b, 4096, bytes, 1));
  EXPECT_TRUE(holds_pattern(a, 4096, bytes, 2));
}

TEST_F(SendReceive, AQpTalksToItself) {
  a.make_qp(a.qp_options());
  a.make_region(4096);
  Route route;
  route.receive_psn = route.send_psn;
  a.connect(a, route);
  a.fill(0, 100, 5);
  a.receive(1, {a.piece(2048, 100)});
  a.post(send(2, {a.piece(0, 100)}));

  EXPECT_TRUE(completed(a.received(), 1, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  EXPECT_TRUE(holds_pattern(a, 2048, 100, 5));
}

TEST_F(SendReceive, MemoryOfTheDeviceIsMemoryLikeAnyOther) {
  for (Side* side : {&a, &b}) {
    side->make_qp(side->qp_options());
    side->make_region(16384, every_access, MemoryKind::device);
  }
  EXPECT_EQ(b.at(0) % 4096, 0u);
  EXPECT_TRUE(holds_zeros(b, 0, 16384));
  connect_qps();
  a.fill(3, 5000, 9);
  b.receive(1, {b.piece(1, 5000)});
  a.post(send(2, {a.piece(3, 5000)}));

  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  EXPECT_TRUE(holds_pattern(b, 1, 5000, 9));
}

}  // namespace
}  // namespace verbatim::conformance
