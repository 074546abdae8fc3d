// Receives shared by several QPs.
#include <cerrno>

#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class SharedReceives : public ConformanceCase {
 protected:
  void SetUp() override {
    if (b.device.orig_attr.max_srq == 0) GTEST_SKIP() << "the device has no SRQ";
    srq = b.endpoint->create_srq({.pd = b.pd, .max_wr = 32, .max_sge = 2}).object;
    ASSERT_TRUE(srq);
    connect_another(b);
  }

  // A QP of a and one of b that takes its receives from the SRQ, connected.
  void connect_another(Side& receiver, const Route& route = {}) {
    QpOptions options = receiver.qp_options();
    options.srq = srq;
    options.cap.max_recv_wr = 0;
    options.cap.max_recv_sge = 0;
    receiver.make_qp(options);
    a.make_qp(a.qp_options());
    if (!a.buffer) a.make_region(16'384);
    if (!receiver.buffer) receiver.make_region(16'384);
    a.connect(receiver, route);
    receiver.connect(a, mirrored(route));
  }

  Posted give(std::uint64_t id, std::vector<ibv_sge> pieces) {
    return b.endpoint->post_srq_recv(srq, {ReceiveRequest{.id = id, .pieces = std::move(pieces)}});
  }

  Srq srq;
};

TEST_F(SharedReceives, ServeWhicheverQpNeedsThem) {
  Side first_of_a = a;
  Side second_of_b = b;
  connect_another(second_of_b);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(give(i, {b.piece(0, 64)}).error, 0);
  const Side* senders[] = {&first_of_a, &a, &a, &first_of_a};
  const std::uint32_t receivers[] = {b.qpn, second_of_b.qpn, second_of_b.qpn, b.qpn};
  for (std::uint64_t i = 0; i < 4; ++i) {
    senders[i]->post(send(i, {a.piece(0, 64)}));
    const ibv_wc received = b.received();
    EXPECT_TRUE(completed(received, i, IBV_WC_RECV));
    EXPECT_EQ(received.qp_num, receivers[i]);
  }
  EXPECT_EQ(a.sent(4).size(), 4u);
}

TEST_F(SharedReceives, ScatterAndCarryImmediates) {
  a.fill(0, 3000, 1);
  EXPECT_EQ(give(1, {b.piece(0, 1000), b.piece(1000, 2500)}).error, 0);
  EXPECT_EQ(give(2, {b.piece(8192, 100)}).error, 0);
  a.post(send(3, {a.piece(0, 3000)}));
  a.post(write_with_immediate(4, {a.piece(0, 100)}, b, 12'000, 6));
  EXPECT_EQ(b.received().byte_len, 3000u);
  EXPECT_TRUE(holds_pattern(b, 0, 3000, 1));
  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 2, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(immediate_of(received), 6u);
  EXPECT_EQ(a.sent(2).size(), 2u);
}

TEST_F(SharedReceives, SenderWaitsWhenThereAreNone) {
  a.post(send(1, {a.piece(0, 64)}));
  fabric->advance(5ms);
  EXPECT_TRUE(a.idle(a.send_cq));
  EXPECT_EQ(give(2, {b.piece(0, 64)}).error, 0);
  EXPECT_TRUE(completed(b.received(), 2, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_SEND));
}

TEST_F(SharedReceives, AQpWithThemHasNoneOfItsOwn) {
  EXPECT_NE(b.endpoint->post_recv(b.qp, {{.id = 1, .pieces = {b.piece(0, 64)}}}).error, 0);
}

TEST_F(SharedReceives, FullQueueRefuses) {
  const QueriedSrq queried = b.endpoint->query_srq(srq);
  ASSERT_EQ(queried.error, 0);
  EXPECT_GE(queried.attributes.max_wr, 32u);
  const std::uint32_t bound = 4 * queried.attributes.max_wr;
  std::vector<ReceiveRequest> requests;
  for (std::uint32_t i = 0; i < bound; ++i) requests.push_back({.id = i, .pieces = {b.piece(0, 8)}});
  const Posted posted = b.endpoint->post_srq_recv(srq, requests);
  EXPECT_EQ(posted.error, ENOMEM);
  EXPECT_GE(posted.bad_index, static_cast<int>(queried.attributes.max_wr));
  a.post(send(1, {a.piece(0, 8)}));
  EXPECT_TRUE(completed(b.received(), 0, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_SEND));
}

TEST_F(SharedReceives, LimitIsReportedOnceWhenFewerAreLeft) {
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(give(i, {b.piece(0, 64)}).error, 0);
  ibv_srq_attr limit{};
  limit.srq_limit = 8;
  ASSERT_EQ(b.endpoint->modify_srq(srq, limit, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(b.endpoint->query_srq(srq).attributes.srq_limit, 8u);

  for (std::uint64_t i = 0; i < 2; ++i) a.post(send(i, {a.piece(0, 8)}));
  EXPECT_EQ(b.received(2).size(), 2u);
  EXPECT_FALSE(b.endpoint->get_async_event());  // eight are left: not fewer than the limit
  a.post(send(2, {a.piece(0, 8)}));
  const auto event = b.async_event(IBV_EVENT_SRQ_LIMIT_REACHED);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->srq, srq);
  EXPECT_EQ(b.endpoint->query_srq(srq).attributes.srq_limit, 0u);  // disarmed by the event

  a.post(send(3, {a.piece(0, 8)}));
  EXPECT_EQ(b.received(2).size(), 2u);
  EXPECT_FALSE(b.endpoint->get_async_event());
  EXPECT_EQ(a.sent(4).size(), 4u);
}

// The receives belong to the SRQ, not to the QP that fails.
TEST_F(SharedReceives, StayWhenAQpFails) {
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(give(i, {b.piece(0, 64)}).error, 0);
  b.to(IBV_QPS_ERR);
  fabric->advance(2ms);
  EXPECT_TRUE(b.idle(b.recv_cq));
  connect_another(b);
  a.post(send(9, {a.piece(0, 64)}));
  EXPECT_TRUE(completed(b.received(), 0, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 9, IBV_WC_SEND));
}

TEST_F(SharedReceives, FailedQpSaysWhenItTakesNoMore) {
  EXPECT_EQ(give(1, {b.piece(0, 64)}).error, 0);
  b.to(IBV_QPS_ERR);
  const auto event = b.async_event(IBV_EVENT_QP_LAST_WQE_REACHED, 1s);
  if (!event) GTEST_SKIP() << "the device reports no last receive of a QP with an SRQ";
  EXPECT_EQ(event->qp, b.qp);
}

TEST_F(SharedReceives, QueueInUseStays) {
  EXPECT_EQ(b.endpoint->destroy_srq(srq), EBUSY);
}

}  // namespace
}  // namespace verbatim::conformance
