// Inline data, gathering and scattering.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class Inline : public ConformanceCase {
 protected:
  void SetUp() override {
    connect();
    if (a.cap.max_inline_data == 0) GTEST_SKIP() << "the device has no inline data";
  }
  static constexpr unsigned flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
};

TEST_F(Inline, BufferIsFreeWhenThePostReturns) {
  a.fill(0, 48, 1);
  a.post(with_flags(send(1, {a.piece(0, 48)}), flags));  // there is no receive yet, so it can't have left
  a.fill(0, 48, 99);
  fabric->advance(1ms);
  b.receive(2, {b.piece(0, 64)});

  EXPECT_EQ(b.received().byte_len, 48u);
  EXPECT_TRUE(holds_pattern(b, 0, 48, 1));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_SEND));
}

TEST_F(Inline, NeedsNoKey) {
  a.fill(0, 32, 2);
  ibv_sge piece = a.piece(0, 32);
  piece.lkey = 0xdeadbeef;
  b.receive(1, {b.piece(0, 64)});
  a.post(with_flags(send(2, {piece}), flags));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  EXPECT_EQ(b.received().byte_len, 32u);
  EXPECT_TRUE(holds_pattern(b, 0, 32, 2));
}

TEST_F(Inline, GathersPieces) {
  a.fill(0, 50, 3);
  b.receive(1, {b.piece(0, 64)});
  a.post(with_flags(send(2, {a.piece(0, 1), a.piece(1, 30), a.piece(31, 19)}), flags));
  EXPECT_EQ(b.received().byte_len, 50u);
  EXPECT_TRUE(holds_pattern(b, 0, 50, 3));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

TEST_F(Inline, AsMuchAsTheQpSaysAndNotMore) {
  const std::uint32_t most = a.cap.max_inline_data;
  a.fill(0, most, 4);
  a.post(with_flags(write(1, {a.piece(0, most)}, b, 0), flags));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(holds_pattern(b, 0, most, 4));

  const Posted refused = a.endpoint->post_send(a.qp, {with_flags(write(2, {a.piece(0, most + 1)}, b, 0), flags)});
  EXPECT_NE(refused.error, 0);
  EXPECT_EQ(refused.bad_index, 0);
}

class Pieces : public ConformanceCase {};

TEST_F(Pieces, OddOnesAreGatheredAndScattered) {
  connect();
  constexpr std::uint32_t bytes = 1 + 7 + 1024 + 2001;
  a.fill(0, bytes, 1);
  b.receive(1, {b.piece(0, 1023), b.piece(1023, 2), b.piece(1025, 1), b.piece(1026, 8000)});
  a.post(send(2, {a.piece(0, 1), a.piece(1, 7), a.piece(8, 1024), a.piece(1032, 2001)}));

  EXPECT_EQ(b.received().byte_len, bytes);
  EXPECT_TRUE(holds_pattern(b, 0, bytes, 1));
  EXPECT_TRUE(holds_zeros(b, bytes, 1000));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

TEST_F(Pieces, ComeFromAndGoToDifferentRegions) {
  connect();
  Side second_of_a = a;
  Side second_of_b = b;
  second_of_a.make_region(4096);
  second_of_b.make_region(4096);
  a.fill(0, 100, 1);
  second_of_a.fill(0, 100, 2);
  b.receive(1, {second_of_b.piece(0, 100), b.piece(0, 100)});
  a.post(send(2, {a.piece(0, 100), second_of_a.piece(0, 100)}));

  EXPECT_EQ(b.received().byte_len, 200u);
  EXPECT_TRUE(holds_pattern(second_of_b, 0, 100, 1));
  EXPECT_TRUE(holds_pattern(b, 0, 100, 2));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

TEST_F(Pieces, AsManyAsTheQpSaysAndNotMore) {
  connect();
  std::vector<ibv_sge> sent;
  std::vector<ibv_sge> received;
  for (std::uint32_t i = 0; i < a.cap.max_send_sge; ++i) sent.push_back(a.piece(100 * i, 100));
  for (std::uint32_t i = 0; i < b.cap.max_recv_sge; ++i) received.push_back(b.piece(200 * i, 200));
  const std::uint32_t bytes = 100 * a.cap.max_send_sge;
  a.fill(0, bytes, 3);
  b.receive(1, received);
  a.post(send(2, sent));
  EXPECT_EQ(b.received().byte_len, bytes);
  EXPECT_TRUE(holds_pattern(b, 0, bytes, 3));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));

  sent.push_back(a.piece(0, 1));
  received.push_back(b.piece(0, 1));
  const Posted refused_send = a.endpoint->post_send(a.qp, {send(3, sent)});
  EXPECT_NE(refused_send.error, 0);
  EXPECT_EQ(refused_send.bad_index, 0);
  const Posted refused_receive = b.endpoint->post_recv(b.qp, {{.id = 4, .pieces = received}});
  EXPECT_NE(refused_receive.error, 0);
  EXPECT_EQ(refused_receive.bad_index, 0);
}

TEST_F(Pieces, AsManyAsTheDeviceHas) {
  const auto most = static_cast<std::uint32_t>(a.device.orig_attr.max_sge);
  for (Side* side : {&a, &b}) {
    QpOptions options = side->qp_options();
    options.cap.max_send_sge = most;
    options.cap.max_recv_sge = most;
    side->make_qp(options);
    side->make_region(64 << 10);
  }
  connect_qps();
  std::vector<ibv_sge> sent;
  std::vector<ibv_sge> received;
  for (std::uint32_t i = 0; i < most; ++i) {
    sent.push_back(a.piece(37 * i, 37));
    received.push_back(b.piece(37 * i, 37));
  }
  a.fill(0, 37 * most, 5);
  b.receive(1, received);
  a.post(send(2, sent));
  EXPECT_EQ(b.received().byte_len, 37 * most);
  EXPECT_TRUE(holds_pattern(b, 0, 37 * most, 5));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

}  // namespace
}  // namespace verbatim::conformance
