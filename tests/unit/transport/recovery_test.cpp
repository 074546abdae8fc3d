// Channels whose queue pairs fail under everything at once, at either end or at both, at any moment, their recoveries
// included: nothing is lost, doubled, reordered or wrong, and nothing is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "traffic.hpp"

namespace verbatim::transport::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Shape {
  const char* name;
  bool write_queue = false;
  std::vector<soft::PacketRule> packets;
};

class Recovery : public testing::TestWithParam<Shape> {};

void kill_queue_pair(const Side& side) {
  if (!side.channel->has_lane()) return;
  side.node->device().kill(side.channel->lane().queue().queue_pair().handle());
}

// Every message is there, once.
void expect_nothing_left(Side& side, std::uint64_t puts) {
  for (std::uint64_t i = 0; i < puts; ++i) {
    Request notified = side.node->engine->receive(nullptr, 0, notice, exact_tag, any_source);
    ASSERT_TRUE(notified.ok()) << "notice " << i << " is missing";
  }
  EXPECT_FALSE(side.node->engine->probe(Tag{0}, TagMask{0}, any_source).has_value()) << "a message too many";
}

TEST_P(Recovery, LosesAndDoublesNothingWhateverFailsWhen) {
  std::uint64_t recoveries = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Cluster cluster(seed);
    soft::DeviceConfig device;
    device.faults.packets = GetParam().packets;
    Side a(cluster.add(crowded_config(GetParam().write_queue), device));
    Side b(cluster.add(crowded_config(GetParam().write_queue), device));
    const std::uint64_t pinned = a.node->engine->counters().pinned_bytes;
    std::tie(a.channel, b.channel) = cluster.connect(*a.node, *b.node);
    constexpr std::uint64_t rounds = 2;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      start_everything(a, b, round);
      start_everything(b, a, 100 + round);
      start_late_receives(a, 100 + round);
      start_late_receives(b, round);
      for (std::uint64_t kills = 1 + random.below(8); kills != 0; --kills) {
        const Time kill_at = cluster.now() + microseconds(random.below(random.below(2) == 0 ? 100 : 1000));
        cluster.run_until([&] { return (void)a.all_ended(), (void)b.all_ended(), cluster.now() >= kill_at; });
        const std::uint64_t which = random.below(4);
        if (which != 1) kill_queue_pair(a);
        if (which != 2) kill_queue_pair(b);
      }
      ASSERT_TRUE(cluster.run_until(
          [&] {
            const bool a_ended = a.all_ended();
            return b.all_ended() && a_ended;
          },
          seconds(600)))
          << "something hangs: " << to_string(a.channel->recovery().state()) << ", "
          << to_string(b.channel->recovery().state()) << " " << a.channel->reason_text() << b.channel->reason_text();
      for (Side* side : {&a, &b}) {
        side->expect_left_alone();
        for (const Side::Operation& operation : side->operations) {
          ASSERT_TRUE(operation.request.ok()) << operation.what << ": " << side->channel->reason_text();
        }
        side->operations.clear();
        std::uint64_t counter = 0;
        std::memcpy(&counter, side->shared.data() + slots * slot_bytes, sizeof(counter));
        ASSERT_EQ(counter, operations_per_round * (round + 1)) << "atomics were lost, or executed again";
        for (std::uint64_t i = 0; i < slots / 2; ++i) {
          const Bytes put = pattern(slot_bytes - 3, (side == &b ? round : 100 + round) * 1000 + i);
          ASSERT_TRUE(
              std::equal(put.begin(), put.end(), side->shared.begin() + static_cast<std::ptrdiff_t>(i * slot_bytes)));
        }
        expect_nothing_left(*side, slots / 2);
      }
    }
    recoveries += a.channel->counters().recoveries;
    cluster.run_for(milliseconds(10));
    for (Side* side : {&a, &b}) {
      EXPECT_EQ(side->node->engine->requests().under_way(), 0U);
      EXPECT_EQ(side->node->engine->receives().under_way(), 0U);
      EXPECT_EQ(side->node->counter("rnr_nak_sent"), 0U);
      (void)side->channel->close();
    }
    ASSERT_TRUE(cluster.run_until([&] { return a.node->engine->closed() && b.node->engine->closed(); }));
    EXPECT_EQ(a.node->engine->counters().pinned_bytes, pinned);
    EXPECT_EQ(b.node->engine->counters().pinned_bytes, pinned);
  }
  EXPECT_GT(recoveries, 30U);
}

INSTANTIATE_TEST_SUITE_P(
    Of, Recovery,
    testing::Values(Shape{"Receives", false, {}}, Shape{"WriteQueues", true, {}},
                    Shape{"ReceivesOnABadWire",
                          false,
                          {{.fault = soft::PacketFault::drop, .rate = 0.01},
                           {.fault = soft::PacketFault::duplicate, .rate = 0.02, .delay = microseconds(100)},
                           {.fault = soft::PacketFault::delay, .rate = 0.01, .delay = microseconds(200)}}},
                    Shape{"WriteQueuesOnABadWire",
                          true,
                          {{.fault = soft::PacketFault::drop, .rate = 0.01},
                           {.fault = soft::PacketFault::reorder, .rate = 0.02, .delay = microseconds(3)}}}),
    [](const auto& shape) { return std::string(shape.param.name); });

// One end sends and hears nothing but credits, and fails more often than recovery.attempts allows in a row.
TEST(RecoveryOfAStream, IsProgressForTheSenderToo) {
  for (const bool write_queue : {false, true}) {
    Cluster cluster(3);
    Side a(cluster.add(crowded_config(write_queue)));
    Side b(cluster.add(crowded_config(write_queue)));
    std::tie(a.channel, b.channel) = cluster.connect(*a.node, *b.node);
    constexpr std::uint64_t count = 4000;
    std::vector<std::uint64_t> received(count);
    std::vector<Request> receives;
    for (std::uint64_t& word : received) {
      receives.push_back(b.node->engine->receive(&word, sizeof(word), Tag{1}, exact_tag, any_source));
    }
    std::vector<std::uint64_t> numbers(count);
    std::vector<Request> sends;
    for (std::uint64_t i = 0; i < count; ++i) {
      numbers[i] = i;
      sends.push_back(a.channel->send(&numbers[i], sizeof(numbers[i]), Tag{1}));
    }
    for (std::uint64_t next = 50; next < count; next += 50) {
      ASSERT_TRUE(cluster.run_until([&] { return receives[next].done(); })) << a.channel->reason_text();
      kill_queue_pair(next % 100 == 0 ? a : b);
    }
    ASSERT_TRUE(cluster.run_until(
        [&] { return std::ranges::all_of(receives, &Request::done) && std::ranges::all_of(sends, &Request::done); }));
    EXPECT_EQ(received, numbers);
    EXPECT_TRUE(std::ranges::all_of(sends, &Request::ok));
    EXPECT_GT(a.channel->counters().recoveries, crowded_config(false).recovery.attempts);
  }
}

TEST(RecoveryThatFails, ClosesTheChannelWithWhatItWaitedFor) {
  Config config = crowded_config(false);
  config.recovery.deadline = milliseconds(5);
  Cluster cluster;
  Side a(cluster.add(config));
  Side b(cluster.add(config));
  std::tie(a.channel, b.channel) = cluster.connect(*a.node, *b.node);
  const std::uint64_t number = 1;
  cluster.asleep.push_back(b.node);
  kill_queue_pair(a);
  const Request send = a.channel->send(&number, sizeof(number), Tag{1});
  const Request flush = a.channel->flush();
  ASSERT_TRUE(cluster.run_until([&] { return flush.done() && send.done(); }));
  EXPECT_EQ(flush.completion().status, Status::device_failed);
  EXPECT_EQ(a.channel->state(), ChannelState::closed);
  EXPECT_NE(a.channel->reason_text().find("recovery.deadline (5ms)"), std::string::npos) << a.channel->reason_text();
}

}  // namespace
}  // namespace verbatim::transport::test
