// A QP in error: everything on both queues ends as flushed, once and in order, and so does what is posted afterwards.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class Flush : public ConformanceCase {
 protected:
  void expect_flushed(const std::vector<ibv_wc>& ended, std::uint64_t first_id) {
    for (std::size_t i = 0; i < ended.size(); ++i) {
      EXPECT_TRUE(failed(ended[i], first_id + i, IBV_WC_WR_FLUSH_ERR));
      EXPECT_EQ(ended[i].qp_num, a.qpn);
    }
  }
};

TEST_F(Flush, EndsReceivesInOrder) {
  connect();
  for (std::uint64_t i = 0; i < 64; ++i) a.receive(i, {a.piece(0, 64)});
  a.to(IBV_QPS_ERR);
  expect_flushed(a.received(64), 0);
  EXPECT_TRUE(a.idle(a.recv_cq));
}

TEST_F(Flush, EndsSendsInOrderEvenUnsignalledOnes) {
  connect();  // nothing is received over there, so nothing is ever acknowledged
  for (std::uint64_t i = 0; i < 64; ++i) a.post(with_flags(send(i, {a.piece(0, 64)}), signalled_if(i % 2 == 0)));
  a.to(IBV_QPS_ERR);
  expect_flushed(a.sent(64), 0);
  EXPECT_TRUE(a.idle(a.send_cq));
}

TEST_F(Flush, EndsSendsThatArePostedInError) {
  connect();
  a.to(IBV_QPS_ERR);
  for (std::uint64_t i = 0; i < 10; ++i) a.post(send(i, {a.piece(0, 64)}));
  expect_flushed(a.sent(10), 0);
}

TEST_F(Flush, EndsReceivesThatArePostedInError) {
  SKIP_WHERE_IT_DEVIATES(a, Deviation::receive_posted_in_error_stays);
  connect();
  a.to(IBV_QPS_ERR);
  for (std::uint64_t i = 0; i < 10; ++i) a.receive(i, {a.piece(0, 64)});
  expect_flushed(a.received(10), 0);
}

TEST_F(Flush, FollowsTheRequestThatFailed) {
  connect();
  for (std::uint64_t i = 0; i < 10; ++i) a.receive(100 + i, {a.piece(0, 64)});
  SendRequest bad = write(4, {a.piece(0, 64)}, b, 0);
  bad.rkey ^= 0x5a5a5a00;
  for (std::uint64_t i = 0; i < 4; ++i) a.post(write(i, {a.piece(0, 64)}, b, 0));
  a.post(bad);
  // By now the failure may be known: then these are flushed at once.
  for (std::uint64_t i = 5; i < 20; ++i) a.post(write(i, {a.piece(0, 64)}, b, 0));

  const std::vector<ibv_wc> ended = a.sent(20);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(completed(ended[i], i, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(failed(ended[4], 4, IBV_WC_REM_ACCESS_ERR));
  expect_flushed({ended.begin() + 5, ended.end()}, 5);
  expect_flushed(a.received(10), 100);
}

TEST_F(Flush, NothingSucceedsAfterwards) {
  connect();
  constexpr std::uint32_t count = 60;
  for (std::uint32_t i = 0; i < count; ++i) b.receive(i, {b.piece(0, 4096)});
  for (std::uint32_t i = 0; i < count; ++i) a.post(send(i, {a.piece(0, 4096)}));
  a.to(IBV_QPS_ERR);
  const std::vector<ibv_wc> ended = a.sent(count);
  bool in_error = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(ended[i].wr_id, i);
    in_error = in_error || ended[i].status != IBV_WC_SUCCESS;
    if (in_error) {
      EXPECT_EQ(ended[i].status, IBV_WC_WR_FLUSH_ERR) << ibv_wc_status_str(ended[i].status);
    }
  }
}

TEST_F(Flush, WorksFromInit) {
  a.make_qp(a.qp_options());
  a.make_region(4096);
  a.to_init();
  for (std::uint64_t i = 0; i < 5; ++i) a.receive(i, {a.piece(0, 64)});
  a.to(IBV_QPS_ERR);
  expect_flushed(a.received(5), 0);
}

}  // namespace
}  // namespace verbatim::conformance
