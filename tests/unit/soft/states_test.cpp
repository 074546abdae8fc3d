// What each state does to what is queued; and a queue pair taken through all of them a thousand times.
#include <cerrno>
#include <set>

#include "base/random.hpp"
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

using std::chrono::microseconds;

class States : public RcPair {
 protected:
  static void expect_flushed(const ibv_wc& wc, std::uint64_t wr_id) {
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc.wr_id, wr_id);
  }
};

TEST_F(States, ResetDiscardsUnpolledCompletionsOfThatQueuePairOnly) {
  ibv_qp* const first = a.qp;
  ibv_qp* const second = a.qp = make_queue_pair(a);
  ASSERT_NE(second, nullptr);
  // The second one sends to itself.
  to_init(a);
  to_rtr(a, a, settings.psn_a);
  to_rts(a, settings.psn_a);
  a.qp = first;
  for (std::uint64_t i = 0; i < 6; ++i) {
    a.qp = i % 2 == 0 ? first : second;
    ASSERT_EQ(post_rdma(a, i, IBV_WR_RDMA_WRITE, 0, 8, i % 2 == 0 ? b : a, 64), 0);
  }
  settle();
  a.qp = first;
  ASSERT_EQ(modify_to(a, IBV_QPS_RESET), 0);
  const auto left = polled(a);
  ASSERT_EQ(left.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(left[i].qp_num, second->qp_num);
    EXPECT_EQ(left[i].wr_id, 2 * i + 1);
  }
  EXPECT_EQ(a.context->destroy_qp(second), 0);
}

TEST_F(States, DestroyingDiscardsUnpolledCompletions) {
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 8, b, 64), 0);
  settle();
  EXPECT_EQ(a.context->destroy_qp(a.qp), 0);
  a.qp = nullptr;
  EXPECT_TRUE(polled(a).empty());
}

TEST_F(States, ResetForgetsWhatWasPosted) {
  ASSERT_EQ(post_receive(a, 1, 0, 8), 0);
  a.fault({.fault = PacketFault::drop, .rate = 1});
  ASSERT_EQ(post_rdma(a, 2, IBV_WR_RDMA_WRITE, 0, 8, b, 64), 0);
  ASSERT_EQ(modify_to(a, IBV_QPS_RESET), 0);
  settle();
  EXPECT_TRUE(polled(a).empty());
  a.heal();
  reconnect(settings);
  ASSERT_EQ(post_send(b, 3, 0, 8), 0);
  network.run_for(microseconds(30));
  EXPECT_GT(a.counter("rnr_nak_sent"), 0U) << "the receive of before is gone";
}

TEST_F(States, ErrorFlushesBothQueuesInOrder) {
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 8, b, 64), 0);
  settle();
  a.fault({.fault = PacketFault::drop, .rate = 1});
  for (std::uint64_t i = 10; i < 15; ++i) ASSERT_EQ(post_rdma(a, i, IBV_WR_RDMA_WRITE, 0, 8, b, 64, 0), 0);
  for (std::uint64_t i = 20; i < 25; ++i) ASSERT_EQ(post_receive(a, i, 0, 8), 0);
  ASSERT_EQ(modify_to(a, IBV_QPS_ERR), 0);
  const auto wcs = polled(a);
  ASSERT_EQ(wcs.size(), 11U);
  EXPECT_EQ(wcs[0].status, IBV_WC_SUCCESS) << "what was done before stays done";
  std::uint64_t send = 10;
  std::uint64_t receive = 20;
  for (std::size_t i = 1; i < wcs.size(); ++i) {
    expect_flushed(wcs[i], wcs[i].wr_id < 20 ? send++ : receive++);
  }
  // Later ones flush at once: a marker comes after all of them.
  ASSERT_EQ(post_rdma(a, 15, IBV_WR_RDMA_WRITE, 0, 8, b, 64, 0), 0);
  ASSERT_EQ(post_receive(a, 25, 0, 8), 0);
  const auto markers = polled(a);
  ASSERT_EQ(markers.size(), 2U);
  expect_flushed(markers[0], 15);
  expect_flushed(markers[1], 25);
}

TEST_F(States, FlushedRequestsDoNotReachThePeer) {
  fill(a, 0, 8, 1);
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 8, b, 64), 0);  // on its way
  ASSERT_EQ(modify_to(a, IBV_QPS_ERR), 0);
  settle();
  EXPECT_FALSE(same(a, 0, b, 64, 8)) << "the buffer is the application's again";
}

TEST_F(States, QueryAfterErrorTellsNothingButTheState) {
  ASSERT_EQ(modify_to(a, IBV_QPS_ERR), 0);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(a.context->query_qp(a.qp, attributes, IBV_QP_STATE | IBV_QP_AV, init), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_ERR);
  EXPECT_EQ(attributes.cur_qp_state, IBV_QPS_ERR);
  EXPECT_NE(attributes.dest_qp_num, b.qp->qp_num) << "whoever trusts this shall notice";
  EXPECT_NE(attributes.rq_psn, settings.psn_b);
  EXPECT_NE(std::memcmp(attributes.ah_attr.grh.dgid.raw, b.gid().raw, 16), 0);
  EXPECT_EQ(init.cap.max_send_wr, cap.max_send_wr) << "what it was made with is known";
}

TEST_F(States, DrainedIsToldWhenTheLastAnswerCame) {
  b.fault({.fault = PacketFault::delay, .packets = PacketClass::acknowledge, .rate = 1, .delay = microseconds(30)});
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 8, b, 64), 0);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_SQD;
  attributes.en_sqd_async_notify = 1;
  ASSERT_EQ(a.context->modify_qp(a.qp, attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  ASSERT_EQ(post_rdma(a, 2, IBV_WR_RDMA_WRITE, 0, 8, b, 64), 0);
  ibv_qp_init_attr init{};
  ASSERT_EQ(a.context->query_qp(a.qp, attributes, IBV_QP_STATE, init), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_SQD);
  EXPECT_EQ(attributes.sq_draining, 1);
  EXPECT_TRUE(a.async_events().empty());
  EXPECT_EQ(completion(a).wr_id, 1U);
  const auto events = a.async_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].event_type, IBV_EVENT_SQ_DRAINED);
  EXPECT_EQ(events[0].element.qp, a.qp);
  ASSERT_EQ(a.context->query_qp(a.qp, attributes, IBV_QP_STATE, init), 0);
  EXPECT_EQ(attributes.sq_draining, 0);
  settle();
  EXPECT_TRUE(polled(a).empty()) << "the second waits";
  ASSERT_EQ(modify_to(a, IBV_QPS_RTS), 0);
  EXPECT_EQ(completion(a).wr_id, 2U);
}

// A lost packet of what was begun is sent again while draining.
TEST_F(States, DrainingGoesOnSendingAgain) {
  a.fault({.fault = PacketFault::drop, .nth = 1});
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 3000, b, 64), 0);
  ASSERT_EQ(modify_to(a, IBV_QPS_SQD), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_GT(a.counter("retransmits"), 0U);
}

// -- unreliable connections ------------------------------------------------------------------------------------------

class UnreliableStates : public States {
 protected:
  UnreliableStates() {
    type = IBV_QPT_UC;
    config_a.limits.max_msg_bytes = 10000;
  }
};

TEST_F(UnreliableStates, FailedSendStopsTheSendQueueAloneAndComesBack) {
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(post_receive(a, 20 + i, 0, 8), 0);
  ASSERT_EQ(post_send(a, 1, 0, 10001), 0);
  ASSERT_EQ(post_send(a, 2, 0, 8), 0);
  auto wcs = polled(a);
  ASSERT_EQ(wcs.size(), 2U);
  EXPECT_EQ(wcs[0].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(wcs[0].wr_id, 1U);
  expect_flushed(wcs[1], 2);
  EXPECT_EQ(a.state(), IBV_QPS_SQE);
  // Receiving goes on.
  ASSERT_EQ(post_send(b, 3, 0, 8), 0);
  EXPECT_EQ(completion(a).wr_id, 20U);
  EXPECT_TRUE(a.async_events().empty()) << "no event says it: the completion does";
  ASSERT_EQ(modify_to(a, IBV_QPS_RTS), 0);
  ASSERT_EQ(post_receive(b, 30, 0, 8), 0);
  ASSERT_EQ(post_send(a, 4, 0, 8), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  wcs = completions(b, 2);  // its own send's is the first
  ASSERT_EQ(wcs.size(), 2U);
  EXPECT_EQ(wcs[1].wr_id, 30U);
}

TEST_F(UnreliableStates, LostPacketTakesItsMessageAlong) {
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(post_receive(b, i, 4096 * i, 4096), 0);
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    a.fault({.fault = PacketFault::drop, .nth = nth});
    fill(a, 0, 3000, 1);
    ASSERT_EQ(post_send(a, 1, 0, 3000), 0);
    EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS) << "done when it is on its way";
    settle();
    EXPECT_TRUE(polled(b).empty()) << "packet " << nth;
    a.heal();
  }
  fill(a, 0, 3000, 2);
  ASSERT_EQ(post_send(a, 2, 0, 3000), 0);
  const ibv_wc wc = completion(b);
  EXPECT_EQ(wc.wr_id, 0U) << "the receive waited";
  EXPECT_EQ(wc.byte_len, 3000U);
  EXPECT_TRUE(same(a, 0, b, 0, 3000));
}

// -- recycling -------------------------------------------------------------------------------------------------------

// ERR at a random moment of full traffic, and everything new again. Of each posted request there is exactly one
// terminal completion, or RESET discards it; of an earlier round there is none.
TEST_F(States, ThousandRecyclings) {
  constexpr std::uint64_t rounds = 1000;
  static_assert(depth == 64);
  Random random(11);
  std::uint64_t succeeded = 0;
  std::uint64_t flushed = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    ConnectionSettings fresh = settings;
    fresh.psn_a = static_cast<std::uint32_t>(random.below(Psn::mask + 1));
    fresh.psn_b = static_cast<std::uint32_t>(random.below(Psn::mask + 1));
    reconnect(fresh);
    std::set<std::uint64_t> pending_of_a;
    std::set<std::uint64_t> pending_of_b;
    constexpr std::uint64_t receive = 1 << 12;
    for (std::uint64_t i = 0; i < depth; ++i) {
      for (Side* side : {&a, &b}) {
        auto& pending = side == &a ? pending_of_a : pending_of_b;
        ASSERT_EQ(post_receive(*side, round << 16 | receive | i, 65536 + 64 * i, 64), 0);
        ASSERT_EQ(post_send(*side, round << 16 | i, 64 * i, 64), 0);
        pending.insert({round << 16 | receive | i, round << 16 | i});
      }
    }
    for (std::uint64_t steps = random.below(20); steps > 0; --steps) network.step();
    const bool drains = random.chance(0.5);
    for (Side* side : {&a, &b}) {
      if (random.chance(0.5)) {
        side->control().kill(side->qp);
      } else {
        ASSERT_EQ(modify_to(*side, IBV_QPS_ERR), 0);
      }
      auto& pending = side == &a ? pending_of_a : pending_of_b;
      for (const ibv_wc& wc : drains ? polled(*side) : std::vector<ibv_wc>{}) {
        ASSERT_EQ(pending.erase(wc.wr_id), 1U) << "a second completion, or one of another round: " << wc.wr_id;
        ASSERT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
        ++(wc.status == IBV_WC_SUCCESS ? succeeded : flushed);
      }
      if (drains) {
        ASSERT_TRUE(pending.empty()) << "forgotten";
      }
      ASSERT_EQ(modify_to(*side, IBV_QPS_RESET), 0);
      ASSERT_TRUE(polled(*side).empty()) << "discarded by RESET";
    }
    (void)a.async_events();
    (void)b.async_events();
  }
  EXPECT_GT(succeeded, rounds) << "some were done in time";
  EXPECT_GT(flushed, rounds);
}

}  // namespace
}  // namespace verbatim::soft::testing
