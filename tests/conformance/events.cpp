// Completion channels: arming, waking, acknowledging.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

constexpr std::uint64_t context_of_cq = 0x1234567890;

class Events : public ConformanceCase {
 protected:
  // Both sides' CQs have a channel.
  void connect_with_channels() {
    for (Side* side : {&a, &b}) {
      Channel& channel = side == &a ? channel_of_a : channel_of_b;
      channel = side->endpoint->create_comp_channel().object;
      side->send_cq = side->endpoint->create_cq({.entries = 256, .channel = channel}).object;
      side->recv_cq = side->endpoint->create_cq({.entries = 256, .context = context_of_cq, .channel = channel}).object;
    }
    connect();
  }

  bool wakes(const Side& side, Channel channel) {
    return fabric->wait_until([&] { return side.endpoint->channel_readable(channel); }, patience);
  }

  void send_one(unsigned flags) {
    b.receive(1, {b.piece(0, 64)});
    a.post(with_flags(send(2, {a.piece(0, 64)}), flags));
    EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  }

  Channel channel_of_a;
  Channel channel_of_b;
};

TEST_F(Events, ArmedCqWakesOnACompletion) {
  connect_with_channels();
  EXPECT_EQ(b.endpoint->req_notify_cq(b.recv_cq, false), 0);
  EXPECT_FALSE(b.endpoint->channel_readable(channel_of_b));
  send_one(IBV_SEND_SIGNALED);

  EXPECT_TRUE(wakes(b, channel_of_b));
  const auto event = b.endpoint->get_cq_event(channel_of_b);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->cq, b.recv_cq);
  EXPECT_EQ(event->context, context_of_cq);
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  b.endpoint->ack_cq_events(b.recv_cq, 1);
}

TEST_F(Events, UnarmedCqIsSilent) {
  connect_with_channels();
  send_one(IBV_SEND_SIGNALED);
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_FALSE(b.endpoint->channel_readable(channel_of_b));
  EXPECT_FALSE(b.endpoint->get_cq_event(channel_of_b));
}

TEST_F(Events, OneArmingGivesOneEvent) {
  connect_with_channels();
  EXPECT_EQ(b.endpoint->req_notify_cq(b.recv_cq, false), 0);
  for (int i = 0; i < 5; ++i) send_one(IBV_SEND_SIGNALED);
  EXPECT_TRUE(wakes(b, channel_of_b));
  EXPECT_TRUE(b.endpoint->get_cq_event(channel_of_b));
  EXPECT_FALSE(b.endpoint->get_cq_event(channel_of_b));
  EXPECT_EQ(b.received(5).size(), 5u);
  b.endpoint->ack_cq_events(b.recv_cq, 1);
}

TEST_F(Events, SendCompletionsWakeToo) {
  connect_with_channels();
  EXPECT_EQ(a.endpoint->req_notify_cq(a.send_cq, false), 0);
  a.post(write(1, {a.piece(0, 64)}, b, 0));
  EXPECT_TRUE(wakes(a, channel_of_a));
  const auto event = a.endpoint->get_cq_event(channel_of_a);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->cq, a.send_cq);
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_RDMA_WRITE));
  a.endpoint->ack_cq_events(a.send_cq, 1);
}

TEST_F(Events, SolicitedOnlySleepsThroughOthers) {
  connect_with_channels();
  EXPECT_EQ(b.endpoint->req_notify_cq(b.recv_cq, true), 0);
  send_one(IBV_SEND_SIGNALED);
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_FALSE(b.endpoint->channel_readable(channel_of_b));

  send_one(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
  EXPECT_TRUE(wakes(b, channel_of_b));
  EXPECT_TRUE(b.endpoint->get_cq_event(channel_of_b));
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  b.endpoint->ack_cq_events(b.recv_cq, 1);
}

TEST_F(Events, ArmingForAllIsNotWeakenedBySolicitedOnly) {
  connect_with_channels();
  EXPECT_EQ(b.endpoint->req_notify_cq(b.recv_cq, false), 0);
  EXPECT_EQ(b.endpoint->req_notify_cq(b.recv_cq, true), 0);
  send_one(IBV_SEND_SIGNALED);
  EXPECT_TRUE(wakes(b, channel_of_b));
  EXPECT_TRUE(b.endpoint->get_cq_event(channel_of_b));
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  b.endpoint->ack_cq_events(b.recv_cq, 1);
}

TEST_F(Events, FailureWakesWhoWaitsForSolicitedOnes) {
  connect_with_channels();
  b.receive(1, {b.piece(0, 64)});
  EXPECT_EQ(b.endpoint->req_notify_cq(b.recv_cq, true), 0);
  b.to(IBV_QPS_ERR);
  EXPECT_TRUE(wakes(b, channel_of_b));
  EXPECT_TRUE(b.endpoint->get_cq_event(channel_of_b));
  EXPECT_TRUE(failed(b.received(), 1, IBV_WC_WR_FLUSH_ERR));
  b.endpoint->ack_cq_events(b.recv_cq, 1);
}

// Arm, poll until empty, and only then sleep: whatever arrives after the poll wakes.
TEST_F(Events, NoWakeUpIsLost) {
  connect_with_channels();
  constexpr std::uint32_t total = 300;
  constexpr std::uint32_t window = 32;
  std::uint32_t posted = 0;
  std::uint32_t sent = 0;
  std::uint32_t arrived = 0;
  std::uint32_t events = 0;
  for (; posted < window; ++posted) b.receive(posted, {b.piece(0, 64)});
  const auto send_some = [&](std::uint32_t most) {
    for (std::uint32_t i = 0; i < most && sent < total && sent < arrived + window; ++i) {
      a.post(with_flags(send(sent, {a.piece(0, 16)}), signalled_if(sent % 16 == 15)));
      ++sent;
    }
    a.endpoint->poll_cq(a.send_cq, 16);
  };
  const auto poll_until_empty = [&] {
    while (true) {
      const Polled polled = b.endpoint->poll_cq(b.recv_cq, 7);
      if (polled.completions.empty()) return;
      for (const ibv_wc& wc : polled.completions) {
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
        b.receive(posted++, {b.piece(0, 64)});
        ++arrived;
      }
    }
  };

  while (arrived < total) {
    send_some(1 + sent % 5);
    poll_until_empty();
    send_some(1 + sent % 3);  // these may arrive between the poll above and the arming below
    ASSERT_EQ(b.endpoint->req_notify_cq(b.recv_cq, false), 0);
    const std::uint32_t before = arrived;
    poll_until_empty();
    if (arrived != before || arrived == sent) continue;
    ASSERT_TRUE(wakes(b, channel_of_b)) << "asleep with " << sent - arrived << " messages under way";
    while (b.endpoint->get_cq_event(channel_of_b)) ++events;
  }
  while (b.endpoint->get_cq_event(channel_of_b)) ++events;
  b.endpoint->ack_cq_events(b.recv_cq, events);
  EXPECT_EQ(arrived, total);
}

TEST_F(Events, AreAcknowledgedPerCq) {
  connect_with_channels();
  EXPECT_EQ(a.endpoint->req_notify_cq(a.send_cq, false), 0);
  EXPECT_EQ(a.endpoint->req_notify_cq(a.recv_cq, false), 0);
  a.receive(1, {a.piece(0, 64)});
  b.receive(2, {b.piece(0, 64)});
  a.post(send(3, {a.piece(0, 64)}));
  b.post(send(4, {b.piece(0, 64)}));
  unsigned of_send_cq = 0;
  unsigned of_recv_cq = 0;
  const auto both_came = [&] {
    while (const auto event = a.endpoint->get_cq_event(channel_of_a)) {
      (event->cq == a.send_cq ? of_send_cq : of_recv_cq) += 1;
    }
    return of_send_cq == 1 && of_recv_cq == 1;
  };
  EXPECT_TRUE(fabric->wait_until(both_came, patience));
  a.endpoint->ack_cq_events(a.send_cq, of_send_cq);
  a.endpoint->ack_cq_events(a.recv_cq, of_recv_cq);
  EXPECT_EQ(a.endpoint->destroy_qp(a.qp), 0);
  EXPECT_EQ(a.endpoint->destroy_cq(a.send_cq), 0);
  EXPECT_EQ(a.endpoint->destroy_cq(a.recv_cq), 0);
  EXPECT_EQ(a.endpoint->destroy_comp_channel(channel_of_a), 0);
}

TEST_F(Events, TeardownDoesNotHang) {
  for (int round = 0; round < 20; ++round) {
    const Channel channel = a.endpoint->create_comp_channel().object;
    a.send_cq = a.endpoint->create_cq({.entries = 16, .channel = channel}).object;
    a.recv_cq = a.endpoint->create_cq({.entries = 16, .channel = channel}).object;
    a.make_qp(a.qp_options());
    a.to_init();
    EXPECT_EQ(a.endpoint->req_notify_cq(a.recv_cq, false), 0);
    EXPECT_EQ(a.endpoint->post_recv(a.qp, {ReceiveRequest{}}).error, 0);
    a.to(IBV_QPS_ERR);
    ASSERT_TRUE(wakes(a, channel));
    if (round % 2 == 0) {
      ASSERT_TRUE(a.endpoint->get_cq_event(channel));
      a.endpoint->ack_cq_events(a.recv_cq, 1);
    }  // else: an event that nobody fetched goes with its CQ
    EXPECT_EQ(a.endpoint->destroy_qp(a.qp), 0);
    EXPECT_EQ(a.endpoint->destroy_cq(a.recv_cq), 0);
    EXPECT_EQ(a.endpoint->destroy_cq(a.send_cq), 0);
    EXPECT_EQ(a.endpoint->destroy_comp_channel(channel), 0);
  }
}

}  // namespace
}  // namespace verbatim::conformance
