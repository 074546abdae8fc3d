#include "qp/recycling.hpp"

#include "base/random.hpp"
#include "unit/qp/rc_pool/two_workers.hpp"

namespace verbatim::qp::testing {
namespace {

class RecyclingInPlace : public TwoWorkers {
 protected:
  // Until it is in INIT or has failed; what was flushed meanwhile.
  std::vector<WorkCompletion> finish(Worker& worker, Recycling& recycling) {
    std::vector<WorkCompletion> ended;
    for (int turn = 0; turn < 1000; ++turn) {
      for (const auto& completion : worker.poll()) {
        if (!recycling.on_completion(completion)) ended.push_back(completion);
      }
      const auto state = recycling.progress(network.now());
      if (state == RecyclingState::in_init || state == RecyclingState::failed) return ended;
      network.run_for(1ms);
    }
    ADD_FAILURE() << "still " << to_string(recycling.state());
    return ended;
  }
};

TEST_F(RecyclingInPlace, EndsEverythingOnceAndWorksAsNew) {
  open();
  Lane lane = connected();
  const auto number = lane.a->number();
  ASSERT_EQ(a->post_receives(*lane.a, 1, 0, 16), 0) << "the receive queue is full";
  for (int i = 0; i < 8; ++i) ASSERT_EQ(lane.a->post_send(WorkKind::send, 1, {}, Signal::no, Inline::no), 0);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(lane.a->post_send(WorkKind::control, 1, {}, Signal::no, Inline::no), 0);
  Recycling recycling(*lane.a, a->pool.next_drain_round(), network.now(), 100ms);
  EXPECT_EQ(recycling.state(), RecyclingState::draining_both);
  const auto ended = finish(*a, recycling);
  EXPECT_EQ(recycling.state(), RecyclingState::in_init);
  EXPECT_TRUE(recycling.flushed());
  EXPECT_EQ(ended.size(), 26U) << "each of ten sends and sixteen receives";
  EXPECT_EQ(lane.a->send_slots_free(), 8U);
  EXPECT_EQ(lane.a->number(), number);

  Recycling of_b(*lane.b, b->pool.next_drain_round(), network.now(), 100ms);
  finish(*b, of_b);
  connect(lane, 0x1234);
  ASSERT_EQ(b->post_receives(*lane.b, 2, 0, 1), 0);
  ASSERT_EQ(lane.a->post_send(WorkKind::send, 2, {}, Signal::yes, Inline::no), 0);
  const auto received = completions(*b, 1);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].id.epoch, 2U);
}

TEST_F(RecyclingInPlace, TakesNoMarkerOfAnotherRound) {
  open();
  Lane lane = connected();
  Recycling recycling(*lane.a, 5, network.now(), 100ms);
  const auto number = lane.a->number();
  EXPECT_FALSE(recycling.on_completion({.id = {WorkKind::drain, ReliableQueue::send_marker, 4}, .qpn = number}));
  EXPECT_FALSE(
      recycling.on_completion({.id = {WorkKind::drain, ReliableQueue::send_marker, 5}, .qpn = {number.value + 1}}));
  EXPECT_FALSE(recycling.on_completion({.id = {WorkKind::send, ReliableQueue::send_marker, 5}, .qpn = number}));
  EXPECT_EQ(recycling.state(), RecyclingState::draining_both);
  EXPECT_TRUE(recycling.on_completion({.id = {WorkKind::drain, ReliableQueue::send_marker, 5}, .qpn = number}));
  EXPECT_EQ(recycling.state(), RecyclingState::draining_receives);
  EXPECT_TRUE(recycling.on_completion({.id = {WorkKind::drain, ReliableQueue::send_marker, 5}, .qpn = number}));
  EXPECT_EQ(recycling.state(), RecyclingState::draining_receives) << "the same one again is not the other";
  EXPECT_EQ(recycling.progress(network.now()), RecyclingState::draining_receives);
  EXPECT_TRUE(recycling.on_completion({.id = {WorkKind::drain, ReliableQueue::receive_marker, 5}, .qpn = number}));
  EXPECT_EQ(recycling.state(), RecyclingState::drained);
}

TEST_F(RecyclingInPlace, WaitsForADrainNoLongerThanItsLimit) {
  open();
  Lane lane = connected();
  a->fault(&soft::FaultPlan::endless_drain);
  Recycling recycling(*lane.a, 1, network.now(), 100ms);
  EXPECT_EQ(recycling.progress(network.now() + 99ms), RecyclingState::draining_both);
  EXPECT_EQ(recycling.progress(network.now() + 100ms), RecyclingState::failed);
  EXPECT_FALSE(recycling.flushed());
  ASSERT_TRUE(recycling.error());
  EXPECT_EQ(recycling.error()->code(), ErrorCode::timed_out);
  EXPECT_NE(std::string(recycling.error()->what()).find("draining both queues after the drain limit of 100ms"),
            std::string::npos)
      << recycling.error()->what();
}

TEST_F(RecyclingInPlace, SaysWhatTheDeviceRefused) {
  open();
  Lane lane = connected();
  a->fault(&soft::FaultPlan::refuse_reset);
  Recycling recycling(*lane.a, 1, network.now(), 100ms);
  finish(*a, recycling);
  EXPECT_EQ(recycling.state(), RecyclingState::failed);
  EXPECT_TRUE(recycling.flushed());
  ASSERT_TRUE(recycling.error());
  EXPECT_NE(std::string(recycling.error()->what()).find("RESET"), std::string::npos) << recycling.error()->what();
}

TEST_F(RecyclingInPlace, StartsFromAnyState) {
  open();
  for (const bool dead : {false, true}) {
    Lane lane{a->pool.lease(), b->pool.lease()};
    if (dead) {
      connect(lane);
      a->control().kill(lane.a->queue_pair().handle());
    }
    ASSERT_EQ(a->post_receives(*lane.a, 1, 0, 3), 0);
    Recycling recycling(*lane.a, a->pool.next_drain_round(), network.now(), 100ms);
    EXPECT_EQ(finish(*a, recycling).size(), 3U);
    EXPECT_EQ(recycling.state(), RecyclingState::in_init);
  }
}

// What one queue pair was asked to do in one round, and how it ended.
struct Tally {
  std::uint32_t accepted = 0;
  std::uint32_t ended = 0;
};

class Rounds : public RecyclingInPlace {
 protected:
  static constexpr std::uint32_t depth = 64;

  void count(const std::vector<WorkCompletion>& completions, std::uint32_t epoch, Tally& tally) {
    for (const auto& completion : completions) {
      EXPECT_EQ(completion.id.epoch, epoch) << "a completion of an older generation";
      ++tally.ended;
    }
  }
  void post_all(const Lane& lane, std::uint32_t epoch, Tally& of_a, Tally& of_b) {
    for (auto* side : {&*a, &*b}) {
      auto& queue = side == &*a ? *lane.a : *lane.b;
      ASSERT_EQ(side->post_receives(queue, epoch, 0, depth), 0);
    }
    for (std::uint32_t i = 0; i < depth; ++i) {
      ASSERT_EQ(lane.a->post_send(WorkKind::send, epoch, {}, Signal::yes, Inline::no), 0);
      ASSERT_EQ(lane.b->post_send(WorkKind::send, epoch, {}, Signal::yes, Inline::no), 0);
    }
    of_a.accepted = of_b.accepted = 2 * depth;
  }
};

TEST_F(Rounds, EachRequestOfAThousandRoundsEndsOnceInItsOwn) {
  constexpr std::uint32_t rounds = 1000;
  auto settings = small_pool();
  settings.send_depth = settings.receive_slots = depth;
  open(settings);
  Random random(11);
  Lane lane{a->pool.lease(), b->pool.lease()};
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    SCOPED_TRACE(round);
    connect(lane, static_cast<std::uint32_t>(random.below(Psn::mask)));
    Tally of_a;
    Tally of_b;
    post_all(lane, round, of_a, of_b);
    const auto steps = random.below(std::uint64_t{3} * depth);
    for (std::uint64_t i = 0; i < steps; ++i) network.step();
    count(a->poll(), round, of_a);
    const Time started = network.now();
    Recycling recycling_a(*lane.a, a->pool.next_drain_round(), started, 100ms);
    Recycling recycling_b(*lane.b, b->pool.next_drain_round(), started, 100ms);
    count(finish(*a, recycling_a), round, of_a);
    count(finish(*b, recycling_b), round, of_b);
    ASSERT_EQ(recycling_a.state(), RecyclingState::in_init);
    ASSERT_EQ(recycling_b.state(), RecyclingState::in_init);
    ASSERT_EQ(of_a.ended, of_a.accepted);
    ASSERT_EQ(of_b.ended, of_b.accepted);
    ASSERT_LT(network.now() - started, 2s);
  }
}

}  // namespace
}  // namespace verbatim::qp::testing
