// Full queues, and lists with a bad request in them.
#include <cerrno>

#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class Posting : public ConformanceCase {};

// Requests until the queue refuses one; the number that it took.
template <class Post>
std::uint32_t fill_queue(Post post, std::uint32_t bound) {
  std::uint32_t accepted = 0;
  while (accepted < bound) {
    const Posted posted = post(accepted);
    if (posted.error != 0) {
      EXPECT_EQ(posted.error, ENOMEM);
      EXPECT_EQ(posted.bad_index, 0);
      break;
    }
    ++accepted;
  }
  return accepted;
}

TEST_F(Posting, FullSendQueueRefuses) {
  connect();  // nothing is received, so nothing leaves the queue
  const std::uint32_t bound = 4 * a.cap.max_send_wr;
  const std::uint32_t accepted =
      fill_queue([&](std::uint32_t i) { return a.endpoint->post_send(a.qp, {send(i, {a.piece(0, 8)})}); }, bound);
  EXPECT_GE(accepted, a.cap.max_send_wr);
  EXPECT_LT(accepted, bound);

  // What it took is delivered as if nothing had happened.
  std::uint32_t received = 0;
  for (; received < accepted; ++received) {
    b.receive(received, {b.piece(0, 8)});
    EXPECT_TRUE(completed(b.received(), received, IBV_WC_RECV));
  }
  const std::vector<ibv_wc> sent = a.sent(accepted);
  for (std::uint32_t i = 0; i < accepted; ++i) EXPECT_TRUE(completed(sent[i], i, IBV_WC_SEND));
  EXPECT_TRUE(b.idle(b.recv_cq));
}

TEST_F(Posting, FullReceiveQueueRefuses) {
  connect();
  const std::uint32_t bound = 4 * b.cap.max_recv_wr;
  const std::uint32_t accepted = fill_queue(
      [&](std::uint32_t i) {
        return b.endpoint->post_recv(b.qp, {ReceiveRequest{.id = i, .pieces = {b.piece(0, 8)}}});
      },
      bound);
  EXPECT_GE(accepted, b.cap.max_recv_wr);
  EXPECT_LT(accepted, bound);
  a.post(send(1, {a.piece(0, 8)}));
  EXPECT_TRUE(completed(b.received(), 0, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_SEND));
}

TEST_F(Posting, ListsGoOutInOrder) {
  connect();
  std::vector<ReceiveRequest> receives;
  std::vector<SendRequest> sends;
  for (std::uint32_t i = 0; i < 20; ++i) {
    a.fill(i * 100, 100, i);
    receives.push_back({.id = i, .pieces = {b.piece(i * 100, 100)}});
    sends.push_back(send(100 + i, {a.piece(i * 100, 100)}));
  }
  EXPECT_EQ(b.endpoint->post_recv(b.qp, receives).error, 0);
  a.post(sends);
  const std::vector<ibv_wc> received = b.received(20);
  const std::vector<ibv_wc> sent = a.sent(20);
  for (std::uint32_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(completed(received[i], i, IBV_WC_RECV));
    EXPECT_TRUE(completed(sent[i], 100 + i, IBV_WC_SEND));
    EXPECT_TRUE(holds_pattern(b, i * 100, 100, i));
  }
}

TEST_F(Posting, BadRequestInAListStopsItThere) {
  connect();
  for (std::uint64_t i = 0; i < 4; ++i) b.receive(i, {b.piece(0, 64)});
  const std::vector<ibv_sge> too_many(a.cap.max_send_sge + 1, a.piece(0, 1));
  const Posted posted = a.endpoint->post_send(
      a.qp, {send(1, {a.piece(0, 8)}), send(2, {a.piece(0, 8)}), send(3, too_many), send(4, {a.piece(0, 8)})});
  EXPECT_NE(posted.error, 0);
  EXPECT_EQ(posted.bad_index, 2);

  // The two before it were posted, the one after it was not.
  const std::vector<ibv_wc> sent = a.sent(2);
  EXPECT_TRUE(completed(sent[0], 1, IBV_WC_SEND));
  EXPECT_TRUE(completed(sent[1], 2, IBV_WC_SEND));
  a.post(send(5, {a.piece(0, 8)}));
  EXPECT_TRUE(completed(a.sent(), 5, IBV_WC_SEND));
  EXPECT_EQ(b.received(3).size(), 3u);
}

TEST_F(Posting, ListLongerThanTheRoomStopsAtTheFirstThatDoesNotFit) {
  connect();  // nothing is received
  const std::uint32_t bound = 4 * a.cap.max_send_wr;
  std::vector<SendRequest> sends;
  for (std::uint32_t i = 0; i < bound; ++i) sends.push_back(send(i, {a.piece(0, 8)}));
  const Posted posted = a.endpoint->post_send(a.qp, sends);
  EXPECT_EQ(posted.error, ENOMEM);
  ASSERT_GE(posted.bad_index, static_cast<int>(a.cap.max_send_wr));
  const auto accepted = static_cast<std::uint32_t>(posted.bad_index);
  for (std::uint32_t i = 0; i < accepted; ++i) {
    b.receive(i, {b.piece(0, 8)});
    EXPECT_TRUE(completed(b.received(), i, IBV_WC_RECV));
  }
  EXPECT_EQ(a.sent(accepted).back().wr_id, accepted - 1);
}

}  // namespace
}  // namespace verbatim::conformance
