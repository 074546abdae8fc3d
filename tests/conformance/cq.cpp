// Completion queues: shared, polled in pieces, resized, overrun.
#include <cerrno>
#include <map>

#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class CompletionQueue : public ConformanceCase {};

TEST_F(CompletionQueue, AnEmptyOneGivesNothing) {
  EXPECT_EQ(a.endpoint->poll_cq(a.send_cq, 4).result, 0);
}

TEST_F(CompletionQueue, GivesAtMostWhatIsAskedFor) {
  connect();
  for (std::uint64_t i = 0; i < 5; ++i) b.receive(i, {b.piece(0, 8)});
  for (std::uint64_t i = 0; i < 5; ++i) a.post(send(i, {a.piece(0, 8)}));
  EXPECT_EQ(a.sent(5).size(), 5u);

  std::vector<ibv_wc> all;
  const auto two_at_a_time = [&] {
    const Polled polled = b.endpoint->poll_cq(b.recv_cq, 2);
    EXPECT_LE(polled.result, 2);
    all.insert(all.end(), polled.completions.begin(), polled.completions.end());
    return all.size() == 5;
  };
  EXPECT_TRUE(fabric->wait_until(two_at_a_time, patience));
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(completed(all[i], i, IBV_WC_RECV));
}

TEST_F(CompletionQueue, SharedByManyQps) {
  constexpr std::uint32_t qps = 6;
  constexpr std::uint32_t messages = 10;
  std::vector<Side> of_a;
  std::map<std::uint32_t, std::uint64_t> next_of_qp;
  for (std::uint32_t i = 0; i < qps; ++i) {
    connect(IBV_QPT_RC, {}, 4096);
    of_a.push_back(a);
    next_of_qp[b.qpn] = 0;
    for (std::uint64_t m = 0; m < messages; ++m) b.receive(m, {b.piece(0, 64)});
  }
  for (std::uint64_t m = 0; m < messages; ++m) {
    for (const Side& side : of_a) side.post(send(m, {side.piece(0, 64)}));
  }
  // Among QPs there is no order; on each there is.
  for (const ibv_wc& wc : b.received(qps * messages)) {
    ASSERT_TRUE(next_of_qp.contains(wc.qp_num));
    EXPECT_TRUE(completed(wc, next_of_qp[wc.qp_num]++, IBV_WC_RECV));
  }
  EXPECT_EQ(a.sent(qps * messages).size(), qps * messages);
}

TEST_F(CompletionQueue, OneForBothDirections) {
  a.recv_cq = a.send_cq;
  connect();
  a.receive(1, {a.piece(0, 64)});
  b.receive(2, {b.piece(0, 64)});
  b.post(send(3, {b.piece(0, 64)}));
  a.post(send(4, {a.piece(0, 64)}));
  std::map<std::uint64_t, ibv_wc_opcode> opcodes;
  for (const ibv_wc& wc : a.received(2)) opcodes[wc.wr_id] = wc.opcode;
  EXPECT_EQ(opcodes, (std::map<std::uint64_t, ibv_wc_opcode>{{1, IBV_WC_RECV}, {4, IBV_WC_SEND}}));
}

TEST_F(CompletionQueue, HasRoomForAtLeastWhatWasAskedFor) {
  for (const int entries : {1, 2, 3, 100, 1000}) {
    const Made<Cq> cq = a.endpoint->create_cq({.entries = entries, .channel = {}});
    ASSERT_EQ(cq.error, 0);
    EXPECT_GE(a.endpoint->cq_entries(cq.object), entries);
  }
}

TEST_F(CompletionQueue, ImpossibleSizesAreRefused) {
  EXPECT_EQ(a.endpoint->create_cq({.entries = 0, .channel = {}}).error, EINVAL);
  EXPECT_EQ(a.endpoint->create_cq({.entries = a.device.orig_attr.max_cqe + 1, .channel = {}}).error, EINVAL);
}

TEST_F(CompletionQueue, InUseStays) {
  connect();
  EXPECT_EQ(a.endpoint->destroy_cq(a.send_cq), EBUSY);
  EXPECT_EQ(a.endpoint->destroy_qp(a.qp), 0);
  EXPECT_EQ(a.endpoint->destroy_cq(a.send_cq), 0);
}

TEST_F(CompletionQueue, ResizedKeepsWhatIsInIt) {
  a.send_cq = a.endpoint->create_cq({.entries = 16, .channel = {}}).object;
  connect();
  for (std::uint64_t i = 0; i < 10; ++i) {
    b.receive(i, {b.piece(0, 8)});
    a.post(send(i, {a.piece(0, 8)}));
  }
  EXPECT_EQ(b.received(10).size(), 10u);
  // When what was read is here, all that was posted before it is in the queue.
  b.fill(128, 8, 5);
  a.post(with_flags(read(99, {a.piece(64, 8)}, b, 128), 0));
  ASSERT_TRUE(fabric->wait_until([this] { return holds_pattern(a, 64, 8, 5); }, 10s));
  const int error = a.endpoint->resize_cq(a.send_cq, 200);
  if (error == EOPNOTSUPP || error == ENOSYS) GTEST_SKIP() << "the device does not resize CQs";
  ASSERT_EQ(error, 0);
  EXPECT_GE(a.endpoint->cq_entries(a.send_cq), 200);
  EXPECT_EQ(a.endpoint->resize_cq(a.send_cq, 2), EINVAL);  // ten are in it

  const std::vector<ibv_wc> sent = a.sent(10);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(completed(sent[i], i, IBV_WC_SEND));
  // And it has that room now.
  for (std::uint64_t i = 0; i < 60; ++i) a.post(write(i, {a.piece(0, 8)}, b, 0));
  EXPECT_EQ(a.sent(60).size(), 60u);
}

TEST_F(CompletionQueue, OverrunIsReported) {
  a.send_cq = a.endpoint->create_cq({.entries = 4, .channel = {}}).object;
  const int room = a.endpoint->cq_entries(a.send_cq);
  if (room >= 60) GTEST_SKIP() << "the smallest CQ has " << room << " entries";
  connect();
  for (std::uint64_t i = 0; i < 60; ++i) a.post(write(i, {a.piece(0, 8)}, b, 0));
  const auto event = a.async_event(IBV_EVENT_CQ_ERR);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->cq, a.send_cq);
}

}  // namespace
}  // namespace verbatim::conformance
