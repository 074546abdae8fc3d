#include "qp/rc_pool.hpp"

#include "unit/qp/rc_pool/two_workers.hpp"

namespace verbatim::qp::testing {
namespace {

soft::DeviceConfig with_queue_pairs(std::uint32_t max_qp) {
  soft::DeviceConfig config;
  config.limits.max_qp = max_qp;
  return config;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class RcPools : public TwoWorkers {
 protected:
  std::string refused_lease(Worker& worker) {
    return refusal(ErrorCode::no_space, [&] { (void)worker.pool.lease(); });
  }
  std::vector<std::unique_ptr<ReliableQueue>> lease_from_a(std::size_t count) {
    std::vector<std::unique_ptr<ReliableQueue>> leased(count);
    for (auto& queue : leased) queue = a->pool.lease();
    return leased;
  }
  void send_one(const Lane& lane) {
    ASSERT_EQ(b->post_receives(*lane.b, 1, 0, 1), 0);
    ASSERT_EQ(lane.a->post_send(WorkKind::send, 1, {}, Signal::yes, Inline::no), 0);
    const auto received = completions(*b, 1);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_FALSE(received[0].failed());
    for (const auto& completion : completions(*a, 1)) lane.a->on_send_completed(completion.id);
  }
  Retired give_back(Worker& worker, std::unique_ptr<ReliableQueue> queue) {
    worker.pool.give_back(std::move(queue), network.now());
    const auto through = retired(worker);
    EXPECT_EQ(through.size(), 1U);
    return through.empty() ? Retired{} : through[0];
  }
};

TEST_F(RcPools, HaveQueuePairsReadyForReceives) {
  open();
  EXPECT_EQ(a->pool.counts().idle, 2U);
  EXPECT_EQ(a->pool.counts().made, 2U);
  const auto queue = a->pool.lease();
  EXPECT_EQ(queue->queue_pair().query_state(), IBV_QPS_INIT);
  EXPECT_EQ(a->post_receives(*queue, 1, 0, 16), 0);
  EXPECT_EQ(a->pool.counts().leased, 1U);
  EXPECT_EQ(a->pool.counts().made, 2U) << "it was made ahead";
}

TEST_F(RcPools, GrowWhenLeasedOutAndShrinkAgain) {
  open();
  auto leased = lease_from_a(5);
  EXPECT_EQ(a->pool.counts().made, 5U);
  const auto reserved = a->completion_queue.reserved();
  EXPECT_EQ(reserved, 5 * small_pool().completion_entries());
  EXPECT_EQ(give_back(*a, std::move(leased[0])).how, Retirement::recycled);
  EXPECT_EQ(give_back(*a, std::move(leased[1])).how, Retirement::recycled);
  EXPECT_EQ(give_back(*a, std::move(leased[2])).how, Retirement::surplus);
  EXPECT_EQ(a->pool.counts().idle, 2U);
  EXPECT_EQ(a->pool.counts().used(), 4U);
  EXPECT_EQ(a->completion_queue.reserved(), 4 * small_pool().completion_entries());
}

TEST_F(RcPools, RefuseWhatTheDeviceHasNotWithUsedAndLimitAndLeaveOthersAlone) {
  open(small_pool(), with_queue_pairs(8));
  Lane lane = connected();
  auto leased = lease_from_a(7);
  const auto sentence = refused_lease(*a);
  EXPECT_TRUE(contains(sentence, "8 of 8 are used (8 by channels, 0 still draining)")) << sentence;
  EXPECT_TRUE(contains(sentence, "the worker's limit is 64, the device's 8")) << sentence;
  send_one(lane);
  a->pool.give_back(std::move(leased.back()), network.now());
  EXPECT_TRUE(contains(refused_lease(*a), "7 by channels, 1 still draining"));
  (void)retired(*a);
  EXPECT_NE(a->pool.lease(), nullptr);
}

TEST_F(RcPools, RefuseWhatTheWorkerMayNot) {
  auto settings = small_pool();
  settings.max = 3;
  open(settings);
  const auto leased = lease_from_a(3);
  const auto sentence = refused_lease(*a);
  EXPECT_TRUE(contains(sentence, "3 of 3")) << sentence;
  EXPECT_TRUE(contains(sentence, "raise the worker's limit")) << sentence;
}

TEST_F(RcPools, RefuseWhatOthersOfTheDeviceHaveTaken) {
  auto settings = small_pool();
  settings.initial = 1;
  open(settings, with_queue_pairs(3));
  CompletionQueue other_queue(*a->context, a->domain, 64, 64);
  RcPool other(*a->context, a->domain, other_queue, a->port, settings);
  const auto one = other.lease();
  const auto two = other.lease();
  const auto first = a->pool.lease();
  const auto reserved = a->completion_queue.reserved();
  const auto sentence = refused_lease(*a);
  EXPECT_TRUE(contains(sentence, "1 of 3 are used here, and the device gives no more")) << sentence;
  EXPECT_EQ(a->completion_queue.reserved(), reserved);
}

TEST_F(RcPools, RefuseWhatTheCompletionQueueCouldNotHold) {
  soft::DeviceConfig config;
  config.limits.max_cqe = 64;
  open(small_pool(), config);
  ASSERT_EQ(small_pool().completion_entries(), 28U);
  const auto one = a->pool.lease();
  const auto two = a->pool.lease();
  const auto sentence = refused_lease(*a);
  EXPECT_TRUE(contains(sentence, "56 of 64 entries are taken, and 28 more are needed")) << sentence;
}

TEST_F(RcPools, MakeFewerAheadWhereThereIsRoomForFewer) {
  auto settings = small_pool();
  settings.initial = 10;
  open(settings, with_queue_pairs(4));
  EXPECT_EQ(a->pool.counts().idle, 4U);
  EXPECT_EQ(b->pool.counts().idle, 10U);
}

TEST_F(RcPools, TakeTheInlineSizeThatTheDeviceHas) {
  auto settings = small_pool();
  settings.inline_bytes = 1024;
  soft::DeviceConfig config;
  config.limits.max_inline_data = 300;
  open(settings, config);
  EXPECT_EQ(a->pool.lease()->max_inline(), 256U);
}

TEST_F(RcPools, RefuseDepthsThatTheDeviceHasNot) {
  soft::DeviceConfig config;
  config.limits.max_qp_wr = 20;
  auto settings = small_pool();
  settings.send_depth = 18;
  const auto sends = refusal(ErrorCode::invalid_argument, [&] { open(settings, config); });
  EXPECT_TRUE(contains(sends, "18 send and 2 control slots")) << sends;
  EXPECT_TRUE(contains(sends, "the 20 requests that soft0 allows")) << sends;
  settings = small_pool();
  settings.receive_slots = 20;
  const auto receives = refusal(ErrorCode::invalid_argument, [&] { open(settings, config); });
  EXPECT_TRUE(contains(receives, "20 receive slots")) << receives;
}

TEST_F(RcPools, ReplaceAQueuePairWhoseDrainNeverEnds) {
  open(small_pool(), with_queue_pairs(2));
  Lane lane = connected();
  send_one(lane);
  ASSERT_EQ(a->post_receives(*lane.a, 1, 0, 4), 0);
  a->fault(&soft::FaultPlan::endless_drain);
  const Time started = network.now();
  a->pool.give_back(std::move(lane.a), started);
  EXPECT_EQ(a->pool.deadline(), started + 100ms);
  const auto through = retired(*a);
  ASSERT_EQ(through.size(), 1U);
  EXPECT_EQ(through[0].how, Retirement::drain_timed_out);
  EXPECT_GE(through[0].took, 100ms);
  EXPECT_LT(through[0].took, 110ms);
  EXPECT_TRUE(contains(through[0].reason, "drain limit")) << through[0].reason;
  EXPECT_EQ(a->pool.counts().drain_timed_out, 1U);
  EXPECT_EQ(a->pool.deadline(), never);
  a->control().set_faults({});
  EXPECT_EQ(a->pool.counts().idle, 2U) << "another took its place";
  EXPECT_EQ(a->pool.counts().made, 3U);
  EXPECT_EQ(give_back(*b, std::move(lane.b)).how, Retirement::recycled);
  Lane fresh = connected();
  send_one(fresh);
}

TEST_F(RcPools, ReplaceAQueuePairThatTheDeviceDoesNotReset) {
  open(small_pool(), with_queue_pairs(2));
  Lane lane = connected();
  a->fault(&soft::FaultPlan::refuse_reset);
  const auto back = give_back(*a, std::move(lane.a));
  EXPECT_EQ(back.how, Retirement::refused);
  EXPECT_TRUE(contains(back.reason, "RESET")) << back.reason;
  EXPECT_EQ(a->pool.counts().refused, 1U);
  EXPECT_EQ(a->pool.counts().idle, 2U) << "another took its place";
  EXPECT_EQ(a->completion_queue.reserved(), 2 * small_pool().completion_entries());
  a->control().set_faults({});
  (void)give_back(*b, std::move(lane.b));
  Lane fresh = connected();
  send_one(fresh);
}

TEST_F(RcPools, DestroyOneWhosePkeyIsGoneFromThePort) {
  auto config = soft::DeviceConfig{};
  config.ports.front().pkeys = {0xffff, 0x8001};
  open(small_pool(), config);
  auto queue = a->pool.lease();
  a->control().set_pkey(1, 0, 0);
  const auto back = give_back(*a, std::move(queue));
  EXPECT_EQ(back.how, Retirement::refused);
  EXPECT_TRUE(contains(back.reason, "P_Key")) << back.reason;
}

TEST_F(RcPools, LeaveTheDeviceAsItWasAfterAThousandRounds) {
  open(small_pool(), with_queue_pairs(8), with_queue_pairs(8));
  const auto at_start = a->pool.counts();
  const auto reserved = a->completion_queue.reserved();
  for (std::uint32_t round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    Lane lane{a->pool.lease(), b->pool.lease()};
    connect(lane, round);
    ASSERT_EQ(b->post_receives(*lane.b, round, 0, 8), 0);
    for (int i = 0; i < 8; ++i) ASSERT_EQ(lane.a->post_send(WorkKind::send, round, {}, Signal::no, Inline::no), 0);
    for (std::uint32_t i = 0; i < round % 16; ++i) network.step();
    ASSERT_EQ(give_back(*a, std::move(lane.a)).how, Retirement::recycled);
    ASSERT_EQ(give_back(*b, std::move(lane.b)).how, Retirement::recycled);
  }
  EXPECT_EQ(a->pool.counts().used(), at_start.used());
  EXPECT_EQ(a->pool.counts().made, at_start.made);
  EXPECT_EQ(a->pool.counts().recycled, 1000U);
  EXPECT_EQ(a->completion_queue.reserved(), reserved);
  EXPECT_EQ(a->counter("cq_overruns"), 0U);
  const auto all = lease_from_a(8);
  EXPECT_TRUE(contains(refused_lease(*a), "8 of 8"));
}

}  // namespace
}  // namespace verbatim::qp::testing
