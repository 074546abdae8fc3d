// What goes wrong underneath: packets, queue pairs and peers. Every request ends once, with a reason, and its buffer is
// left alone from then on.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "traffic.hpp"

namespace verbatim::transport::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Kill {
  bool write_queue;
  bool at_sender;
};

class QueuePairKilled : public testing::TestWithParam<Kill> {};

TEST_P(QueuePairKilled, UnderTrafficEndsEveryRequestOnceAndANewChannelWorks) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Cluster cluster(seed);
    Config config = crowded_config(GetParam().write_queue);
    config.recovery.enabled = false;
    // Queue pairs that are lost would be missed.
    soft::DeviceConfig device;
    device.limits.max_qp = 2;
    Side a(cluster.add(config, device));
    Side b(cluster.add(config, device));
    const std::uint64_t pinned = a.node->engine->counters().pinned_bytes;
    for (int round = 0; round < 2; ++round) {
      std::tie(a.channel, b.channel) = cluster.connect(*a.node, *b.node);
      start_everything(a, b, seed);
      start_everything(b, a, seed + 100);
      const Time kill_at = cluster.now() + microseconds(random.below(400));
      cluster.run_until([&] { return (void)a.all_ended(), (void)b.all_ended(), cluster.now() >= kill_at; });
      const Side& killed = GetParam().at_sender ? a : b;
      killed.node->device().kill(killed.channel->lane().queue().queue_pair().handle());
      ASSERT_TRUE(cluster.run_until([&] {
        const bool a_ended = a.all_ended();
        return b.all_ended() && a_ended;
      })) << "something hangs";
      for (Side* side : {&a, &b}) {
        ASSERT_TRUE(cluster.run_until([&] { return side->node->engine->closed(); }));
        EXPECT_EQ(side->channel->state(), ChannelState::closed);
        EXPECT_NE(side->channel->reason(), Status::ok);
        EXPECT_FALSE(side->channel->reason_text().empty());
        for (const Side::Operation& operation : side->operations) {
          const Completion& how = operation.request.completion();
          const bool unmatched = operation.request.record() == nullptr && how.status == Status::invalid_argument;
          if (!operation.request.ok() && !unmatched) {
            EXPECT_EQ(how.status, side->channel->reason()) << operation.what;
          }
        }
      }
      cluster.run_for(milliseconds(10));
      for (Side* side : {&a, &b}) {
        side->expect_left_alone();
        side->operations.clear();
        EXPECT_EQ(side->node->engine->requests().under_way(), 0U);
        EXPECT_EQ(side->node->engine->receives().under_way(), 0U);
        EXPECT_EQ(side->node->engine->counters().pinned_bytes, pinned);
        std::ranges::fill(side->shared, std::byte{0});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, QueuePairKilled,
                         testing::Values(Kill{false, true}, Kill{false, false}, Kill{true, true}, Kill{true, false}),
                         [](const auto& shape) {
                           return std::string(shape.param.write_queue ? "WriteQueue" : "Receives") +
                                  (shape.param.at_sender ? "AtTheDialler" : "AtTheAcceptor");
                         });

// A receive whose message's bytes have begun to come is not mistaken for one that nobody has touched, and a get of
// which half is with the device is not given back before the device has let go of it.
TEST(QueuePairStuck, KeepsBuffersUntilTheDrainIsOver) {
  Cluster cluster;
  Side a(cluster.add(crowded_config(false)));
  Side b(cluster.add(crowded_config(false)));
  std::tie(a.channel, b.channel) = cluster.connect(*a.node, *b.node);
  Bytes target(slots * slot_bytes, untouched);
  Request get = a.channel->get(target.data(), target.size(), b.remote(), 0);
  Request waits = a.channel->send(target.data(), 8, Tag{1});
  cluster.run_for(microseconds(5));
  ASSERT_FALSE(get.done());
  a.node->device().set_faults({.packets = {}, .endless_drain = true});
  a.node->device().kill(a.channel->lane().queue().queue_pair().handle());
  b.node->links->vanish();
  ASSERT_TRUE(cluster.run_until([&] { return waits.done(); }));
  EXPECT_FALSE(get.done()) << "the device has not let go of the buffer";
  ASSERT_TRUE(cluster.run_until([&] { return get.done(); }));
  EXPECT_NE(get.completion().outcome, Outcome::delivered);
  EXPECT_EQ(get.completion().status, a.channel->reason());
}

// -- packets --------------------------------------------------------------------------------------------------------

struct Trouble {
  const char* name;
  std::vector<soft::PacketRule> rules;
};

class Packets : public testing::TestWithParam<Trouble> {};

TEST_P(Packets, InTroubleHarmNothing) {
  for (const bool write_queue : {false, true}) {
    Cluster cluster(write_queue ? 7 : 8);
    soft::DeviceConfig device;
    device.faults.packets = GetParam().rules;
    Side a(cluster.add(crowded_config(write_queue), device));
    Side b(cluster.add(crowded_config(write_queue), device));
    std::tie(a.channel, b.channel) = cluster.connect(*a.node, *b.node);
    for (std::uint64_t round = 0; round < 2; ++round) {
      start_everything(a, b, round);
      start_everything(b, a, 100 + round);
      for (Side* side : {&a, &b}) {
        start_late_receives(*side, side == &b ? round : 100 + round);
      }
      ASSERT_TRUE(cluster.run_until(
          [&] {
            const bool a_ended = a.all_ended();
            return b.all_ended() && a_ended;
          },
          seconds(600)));
      for (Side* side : {&a, &b}) {
        side->expect_left_alone();
        for (const Side::Operation& operation : side->operations) {
          EXPECT_TRUE(operation.request.ok()) << operation.what << ": " << side->channel->reason_text();
        }
        side->operations.clear();
        std::uint64_t counter = 0;
        std::memcpy(&counter, side->shared.data() + slots * slot_bytes, sizeof(counter));
        EXPECT_EQ(counter, operations_per_round * (round + 1));
      }
    }
    EXPECT_EQ(a.node->counter("rnr_nak_sent") + b.node->counter("rnr_nak_sent"), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, Packets,
    testing::Values(
        Trouble{"Dropped", {{.fault = soft::PacketFault::drop, .rate = 0.02}}},
        Trouble{"DroppedAcknowledgements",
                {{.fault = soft::PacketFault::drop, .packets = soft::PacketClass::acknowledge, .rate = 0.2}}},
        Trouble{"Duplicated", {{.fault = soft::PacketFault::duplicate, .rate = 0.2, .delay = microseconds(30)}}},
        Trouble{"Reordered", {{.fault = soft::PacketFault::reorder, .rate = 0.05, .delay = microseconds(3)}}},
        Trouble{"Delayed", {{.fault = soft::PacketFault::delay, .rate = 0.05, .delay = milliseconds(1)}}},
        Trouble{"Corrupted", {{.fault = soft::PacketFault::corrupt, .rate = 0.02}}},
        Trouble{"All",
                {{.fault = soft::PacketFault::drop, .rate = 0.01},
                 {.fault = soft::PacketFault::duplicate, .rate = 0.05, .delay = microseconds(100)},
                 {.fault = soft::PacketFault::delay, .rate = 0.02, .delay = microseconds(200)},
                 {.fault = soft::PacketFault::corrupt, .rate = 0.01}}}),
    [](const auto& shape) { return std::string(shape.param.name); });

// -- peers ----------------------------------------------------------------------------------------------------------

TEST(PeerGone, InEveryStageOfEverythingEndsWhatIsUnderWay) {
  std::set<std::string> ended_badly;
  std::set<std::pair<RequestKind, RequestStage>> stages;  // that something was in when the peer went
  for (int when = 0; when <= 120; when += 5) {
    SCOPED_TRACE("gone after " + std::to_string(when) + " us");
    Cluster cluster;
    Side a(cluster.add(crowded_config(when % 2 == 1)));
    const std::uint64_t pinned = a.node->engine->counters().pinned_bytes;
    {
      Side b(cluster.add(crowded_config(when % 2 == 1)));
      std::tie(a.channel, b.channel) = cluster.connect(*a.node, *b.node);
      start_everything(a, b, 1);
      start_everything(b, a, 2);
      const Time gone_at = cluster.now() + microseconds(when);
      cluster.run_until([&] { return (void)a.all_ended(), (void)b.all_ended(), cluster.now() >= gone_at; });
      for (const Side::Operation& operation : a.operations) {
        if (const auto* state = static_cast<const RequestState*>(operation.request.record()); state != nullptr) {
          if (!operation.request.done()) stages.insert({state->kind, state->stage});
        }
      }
      b.operations.clear();
      b.region = {};
      b.node->links->vanish();
      b.node->engine.reset();
    }
    ASSERT_TRUE(cluster.run_until([&] { return a.all_ended(); })) << "something hangs";
    EXPECT_EQ(a.channel->state(), ChannelState::closed);
    for (const Side::Operation& operation : a.operations) {
      const bool posted = operation.request.record() != nullptr;
      if (operation.request.ok() || !posted) continue;
      EXPECT_EQ(operation.request.completion().status, Status::peer_gone) << operation.what;
      ended_badly.insert(operation.what);
    }
    EXPECT_TRUE(cluster.run_until([&] { return a.node->engine->closed(); }));
    cluster.run_for(milliseconds(10));
    a.expect_left_alone();
    a.operations.clear();
    EXPECT_EQ(a.node->engine->requests().under_way(), 0U);
    EXPECT_EQ(a.node->engine->receives().under_way(), 0U);
    EXPECT_EQ(a.node->engine->counters().pinned_bytes, pinned);
    Request refused = a.channel->send(nullptr, 0, Tag{1});
    EXPECT_EQ(refused.completion().status, Status::peer_gone);
  }
  for (const char* what : {"receive 200000", "send 200000", "put", "get", "fetch_add", "flush"}) {
    EXPECT_TRUE(ended_badly.contains(what)) << what << " was never under way";
  }
  using enum RequestStage;
  for (const RequestStage stage : {queued, offered, moving, landing}) {
    EXPECT_TRUE(stages.contains({RequestKind::send, stage})) << static_cast<int>(stage);
  }
  for (const RequestStage stage : {posted, moving}) {
    EXPECT_TRUE(stages.contains({RequestKind::receive, stage})) << static_cast<int>(stage);
  }
  for (const RequestKind kind : {RequestKind::put, RequestKind::get}) {
    EXPECT_TRUE(stages.contains({kind, queued}) && stages.contains({kind, landing})) << static_cast<int>(kind);
  }
}

TEST(EngineGone, WithEverythingUnderWayEndsItAsCanceledAndTouchesNothingAfterwards) {
  for (int when = 0; when <= 100; when += 10) {
    SCOPED_TRACE("gone after " + std::to_string(when) + " us");
    Cluster cluster;
    Side b(cluster.add(crowded_config(when % 20 == 0)));
    Side a(cluster.add(crowded_config(when % 20 == 0)));
    std::tie(a.channel, b.channel) = cluster.connect(*a.node, *b.node);
    start_everything(a, b, 1);
    start_everything(b, a, 2);
    const Time gone_at = cluster.now() + microseconds(when);
    cluster.run_until([&] { return (void)a.all_ended(), (void)b.all_ended(), cluster.now() >= gone_at; });
    a.region = {};
    a.node->engine.reset();
    EXPECT_TRUE(a.all_ended()) << "the engine is gone and something has not ended";
    std::size_t canceled = 0;
    for (const Side::Operation& operation : a.operations) {
      if (operation.request.ok() || operation.request.record() == nullptr) continue;
      EXPECT_EQ(operation.request.completion().status, Status::canceled) << operation.what;
      EXPECT_NE(operation.request.completion().outcome, Outcome::pending);
      ++canceled;
    }
    EXPECT_NE(canceled, 0U);
    a.node->links->vanish();
    ASSERT_TRUE(cluster.run_until([&] { return b.all_ended(); })) << "the peer hangs";
    cluster.run_for(milliseconds(10));
    a.expect_left_alone();
    b.expect_left_alone();
  }
}

// What is not known of a put is known of a get: its bytes are not here.
TEST(PutsAndGets, OnTheWayWhenTheChannelFailsEndAsTheirDescriptionsSay) {
  Config config = Cluster::plain_config();
  config.recovery.enabled = false;
  Cluster cluster;
  Node& a = cluster.add(config);
  Node& b = cluster.add(config);
  Bytes shared(1 << 20);
  Bytes local(shared.size());
  const mem::RegisteredRegion region = b.engine->register_memory(shared.data(), shared.size());
  b.engine->remember_region(region);
  const RemoteRegion remote =
      RemoteRegionAccess::make(reinterpret_cast<std::uintptr_t>(shared.data()), shared.size(), region.rkey().value);
  for (const bool put : {true, false}) {
    Channel& channel = *cluster.connect(a, b).first;
    Request request = put ? channel.put(local.data(), local.size(), remote, 0, std::nullopt)
                          : channel.get(local.data(), local.size(), remote, 0);
    ASSERT_FALSE(request.done());
    a.device().kill(channel.lane().queue().queue_pair().handle());
    ASSERT_TRUE(cluster.run_until([&] { return request.done(); }));
    EXPECT_EQ(request.completion().outcome, put ? Outcome::unknown : Outcome::not_delivered);
    EXPECT_EQ(request.completion().status, Status::device_failed);
  }
  b.engine->forget_region(region);
}

}  // namespace
}  // namespace verbatim::transport::test
