// Floods: what a sender may have outstanding is what the receiver has posted, whoever sleeps.
#include <gtest/gtest.h>

#include <vector>

#include "cluster.hpp"

namespace verbatim::transport::test {
namespace {

struct Shape {
  const char* name;
  std::uint32_t receive_depth;
  std::uint32_t send_depth;
  std::uint32_t signal_interval;
  bool write_queue;
};

class Flood : public testing::TestWithParam<Shape> {
 protected:
  Flood() {
    Config config = Cluster::plain_config();
    config.rc.receive_depth = GetParam().receive_depth;
    config.rc.send_depth = GetParam().send_depth;
    config.rc.signal_interval = GetParam().signal_interval;
    config.rc.repost_batch = 2;
    config.eager.max_bytes = 256;
    config.matching.unexpected_bytes = 64 * 1024;
    config.matching.max_requests = 512;
    if (GetParam().write_queue) {
      config.write_queue.enabled = Switch::on;
      config.write_queue.promote_after = 1;
      config.write_queue.bytes = 4096;
    }
    a = &cluster.add(config);
    b = &cluster.add(config);
    std::tie(ab, ba) = cluster.connect(*a, *b);
  }

  Cluster cluster;
  Node* a = nullptr;
  Node* b = nullptr;
  Channel* ab = nullptr;
  Channel* ba = nullptr;
};

// Both sides send as fast as they are let, and neither application receives for a while.
TEST_P(Flood, InBothDirectionsEndsWithAllCreditsBackAndBoundedMemory) {
  constexpr std::uint64_t count = 5'000;
  struct Side {
    Node* node;
    Channel* out;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::vector<Request> sends{};
    std::optional<Request> receive{};
    std::uint64_t word = 0;
  };
  Side sides[] = {{a, ab}, {b, ba}};
  std::vector<std::uint64_t> words(count);
  for (std::uint64_t i = 0; i < count; ++i) words[i] = i * 0x9e3779b97f4a7c15;

  const auto send = [&](Side& side) {
    for (int burst = 0; burst < 16 && side.sent < count; ++burst) {
      Request request = side.out->send(&words[side.sent], sizeof(std::uint64_t), Tag{1});
      if (request.done() && request.completion().status == Status::no_resources) break;
      ASSERT_TRUE(!request.done() || request.ok()) << side.out->reason_text();
      if (!request.done()) side.sends.push_back(std::move(request));
      ++side.sent;
    }
    std::erase_if(side.sends, [](const Request& request) { return request.done(); });
  };
  const auto receive = [&](Side& side) {
    while (side.received < count) {
      if (!side.receive) {
        side.receive = side.node->engine->receive(&side.word, sizeof(side.word), Tag{1}, exact_tag, any_source);
      }
      if (!side.receive->done()) return;
      ASSERT_TRUE(side.receive->ok()) << to_string(side.receive->completion().status);
      ASSERT_EQ(side.word, words[side.received]);
      ++side.received;
      side.receive.reset();
    }
  };
  const Time wakes = cluster.now() + std::chrono::milliseconds(20);
  ASSERT_TRUE(cluster.run_until(
      [&] {
        for (Side& side : sides) {
          send(side);
          if (cluster.now() > wakes) receive(side);
        }
        if (HasFatalFailure()) return true;
        return sides[0].received == count && sides[1].received == count && sides[0].sends.empty() &&
               sides[1].sends.empty();
      },
      std::chrono::seconds(20)))
      << "sent " << sides[0].sent << " and " << sides[1].sent << ", received " << sides[0].received << " and "
      << sides[1].received << ", pending sends " << sides[0].sends.size() << " and " << sides[1].sends.size();

  if (HasFatalFailure()) return;
  for (Side& side : sides) {
    Request flush = side.out->flush();
    ASSERT_TRUE(cluster.run_until([&] { return flush.done(); }));
    EXPECT_TRUE(flush.ok());
    EXPECT_TRUE(side.out->lane().peer_has(side.out->lane().sent())) << "a credit was lost";
    EXPECT_EQ(side.node->counter("rnr_nak_sent"), 0U);
    EXPECT_EQ(side.node->counter("refused_posts"), 0U);
    EXPECT_EQ(side.node->counter("cq_overruns"), 0U);
    EXPECT_EQ(side.node->engine->counters().unexpected_bytes, 0U);
    // The budget, and what was on its way when it was crossed; of offers, one per request that the peer may have.
    EXPECT_LT(side.node->engine->counters().unexpected_peak, 64U * 1024 + 512 * 256);
    flush = Request();
    EXPECT_EQ(side.node->engine->requests().under_way(), 0U);
    EXPECT_EQ(side.node->engine->receives().under_way(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Flood,
                         testing::Values(Shape{"Tiny", 4, 8, 4, false}, Shape{"Two", 2, 8, 4, false},
                                         Shape{"Wide", 64, 64, 16, false}, Shape{"WriteQueue", 4, 8, 4, true}),
                         [](const auto& shape) { return std::string(shape.param.name); });

}  // namespace
}  // namespace verbatim::transport::test
