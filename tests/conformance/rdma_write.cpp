// RDMA WRITE and RDMA WRITE WITH IMMEDIATE on a reliable connection.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class RdmaWrite : public ConformanceCase {};

TEST_F(RdmaWrite, PlacesBytesAndTellsTheTargetNothing) {
  connect();
  a.fill(0, 1000, 1);
  a.post(write(1, {a.piece(0, 1000)}, b, 3000));

  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(holds_pattern(b, 3000, 1000, 1));
  EXPECT_TRUE(holds_zeros(b, 0, 3000));
  EXPECT_TRUE(holds_zeros(b, 4000, 1000));
  EXPECT_TRUE(b.idle(b.recv_cq));
}

TEST_F(RdmaWrite, UsesNoReceive) {
  connect();
  b.receive(1, {b.piece(0, 64)});
  a.post(write(2, {a.piece(0, 64)}, b, 4096));
  a.post(send(3, {a.piece(0, 32)}));

  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(completed(a.sent(), 3, IBV_WC_SEND));
  EXPECT_EQ(b.received().byte_len, 32u);
  EXPECT_TRUE(b.idle(b.recv_cq));
}

TEST_F(RdmaWrite, IsInPlaceWhenALaterSendArrives) {
  connect();
  constexpr std::uint32_t bytes = 20'000;
  a.fill(0, bytes, 4);
  b.receive(1, {b.piece(0, 8)});
  a.post({write(2, {a.piece(0, bytes)}, b, 30'000), send(3, {a.piece(0, 8)})});

  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_TRUE(holds_pattern(b, 30'000, bytes, 4));
  EXPECT_TRUE(completed(a.sent(2)[1], 3, IBV_WC_SEND));
}

TEST_F(RdmaWrite, ImmediateUsesAReceiveButNotItsBuffer) {
  connect();
  a.fill(0, 3000, 5);
  b.receive(1, {b.piece(0, 4096)});
  a.post(write_with_immediate(2, {a.piece(0, 3000)}, b, 8192, 0x01020304));

  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_RDMA_WRITE));
  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 1, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(received.byte_len, 3000u);
  EXPECT_EQ(received.wc_flags & IBV_WC_WITH_IMM, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(immediate_of(received), 0x01020304u);
  EXPECT_TRUE(holds_zeros(b, 0, 4096));
  EXPECT_TRUE(holds_pattern(b, 8192, 3000, 5));
}

TEST_F(RdmaWrite, ImmediateIsContentWithAReceiveThatHasNoBuffer) {
  connect();
  a.fill(0, 100, 6);
  b.receive(1, {});
  a.post(write_with_immediate(2, {a.piece(0, 100)}, b, 500, 77));

  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 1, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(immediate_of(received), 77u);
  EXPECT_TRUE(holds_pattern(b, 500, 100, 6));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_RDMA_WRITE));
}

// The key of an empty operation is not looked at (specification, volume 1, C9-88).
TEST_F(RdmaWrite, OfNothingNeedsNoKey) {
  connect();
  SendRequest nothing = write(1, {}, b, 0);
  nothing.rkey = 0;
  nothing.remote_address = 0;
  a.post(nothing);
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_RDMA_WRITE));
}

TEST_F(RdmaWrite, OfNothingWithImmediateIsANotice) {
  connect();
  b.receive(1, {b.piece(0, 64)});
  a.post(write_with_immediate(2, {}, b, 0, 5));

  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 1, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(received.byte_len, 0u);
  EXPECT_EQ(immediate_of(received), 5u);
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_RDMA_WRITE));
}

TEST_F(RdmaWrite, LaterWriteToTheSamePlaceWins) {
  connect();
  constexpr std::uint32_t bytes = 4000;
  for (std::uint32_t i = 0; i < 10; ++i) a.fill(i * bytes, bytes, i);
  for (std::uint32_t i = 0; i < 10; ++i) a.post(write(i, {a.piece(i * bytes, bytes)}, b, 0));
  EXPECT_TRUE(completed(a.sent(10).back(), 9, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(holds_pattern(b, 0, bytes, 9));
}

// Where a device promises that bytes appear in address order, a receiver may poll the last one of a record.
TEST_F(RdmaWrite, BytesAppearInOrderWhereTheDevicePromisesIt) {
  connect();
  if (!b.endpoint->data_in_order(b.qp, IBV_WR_RDMA_WRITE)) GTEST_SKIP() << "the device promises no order of bytes";
  constexpr std::uint32_t bytes = 10'000;
  for (std::uint32_t round = 1; round <= 20; ++round) {
    b.clear(0, bytes);
    a.fill(0, bytes, round);
    a.endpoint->write(a.buffer, bytes - 1, {0xff});
    a.post(write(round, {a.piece(0, bytes)}, b, 0));
    const auto last_byte_is_there = [&] { return b.endpoint->read(b.buffer, bytes - 1, 1)[0] == 0xff; };
    ASSERT_TRUE(fabric->wait_until(last_byte_is_there, patience));
    EXPECT_TRUE(holds_pattern(b, 0, bytes - 1, round));
    EXPECT_TRUE(completed(a.sent(), round, IBV_WC_RDMA_WRITE));
  }
}

}  // namespace
}  // namespace verbatim::conformance
