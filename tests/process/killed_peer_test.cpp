// Peers are killed at random points of the traffic, again and again. The survivor is told within the time that its
// queue pair was set up with, goes on with the next peer, and nothing is left behind.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "base/random.hpp"
#include "process/support.hpp"

namespace verbatim::process {
namespace {

constexpr std::uint32_t rounds = 50;
constexpr std::uint64_t most_operations = 3000;  // of the survivor, before its peer dies
constexpr std::uint32_t window = 16;             // requests on the way
constexpr std::uint32_t receives = 32;
constexpr std::size_t mib = 1 << 20;
constexpr std::size_t target_offset = mib;  // where the peer writes and reads
constexpr std::size_t receive_offset = 2 * mib;
constexpr std::uint32_t receive_bytes = 32 * 1024;
constexpr std::size_t memory_bytes = 3 * mib;

constexpr std::uint8_t timeout_code = 14;
constexpr Duration ack_timeout = std::chrono::nanoseconds(4096LL << timeout_code);  // 67 ms
constexpr std::uint8_t retry_count = 3;
// Writes go on being placed until the death is noticed; then every try times out once.
constexpr Duration house_keeping = std::chrono::milliseconds(100);
constexpr Duration scheduling = std::chrono::milliseconds(500);  // of a busy machine
constexpr Duration told_within = house_keeping + ack_timeout * (retry_count + 1) * 2 + scheduling;

struct Stage {
  Mailbox survivor;
  Mailbox peer;
  std::atomic<std::uint32_t> survivor_ready{0};
  std::atomic<std::uint32_t> peer_ready{0};
  std::atomic<std::uint64_t> operations{0};  // of the survivor, in this round
  std::atomic<Time::rep> killed_at{0};
  std::atomic<std::uint32_t> told{0};  // rounds that the survivor has finished
  std::atomic<Time::rep> longest{0};   // from a kill to the survivor's error
};

NodeOptions options(const TemporaryDirectory& directory) {
  NodeOptions options = options_in(directory);
  options.bytes = memory_bytes;
  options.timeout = timeout_code;
  options.retry_count = retry_count;
  return options;
}

// One request of any kind and size.
int post_something(Node& node, const Address& peer, Random& random) {
  const auto offset = static_cast<std::size_t>(random.below(mib / 2));
  const auto small = static_cast<std::uint32_t>(8 + random.below(64));
  const auto large = static_cast<std::uint32_t>(1 + random.below(mib / 2));
  switch (random.below(6)) {
    case 0:
      return node.send(0, offset, small);
    case 1:
      return node.send(0, offset, static_cast<std::uint32_t>(1 + random.below(receive_bytes)));
    case 2:
      return node.write(0, offset, small, peer, target_offset);
    case 3:
      return node.write(0, offset, large, peer, target_offset);
    case 4:
      return node.read(0, offset, small, peer, target_offset);
    default:
      return node.read(0, offset, large, peer, target_offset);
  }
}

// Keeps the window full in both directions until a request fails; how it did. What was on the way ends too.
template <typename OnSuccess>
ibv_wc talk_until_failure(Node& node, const Address& peer, Random& random, OnSuccess on_success) {
  constexpr std::uint64_t is_receive = 1000;
  std::uint32_t posted = 0;
  std::uint32_t waiting = receives;
  for (;;) {
    for (; posted < window; ++posted) {
      const int problem = post_something(node, peer, random);
      require(problem == 0, fmt::format("post: {}", problem));
    }
    auto wc = node.poll();
    if (!wc) continue;
    if (wc->status != IBV_WC_SUCCESS) {
      const ibv_wc first = *wc;
      for (wc->wr_id >= is_receive ? --waiting : --posted; posted + waiting > 0;) {
        wc = node.wait(patience);
        require(wc->status == IBV_WC_WR_FLUSH_ERR, fmt::format("behind it: {}", ibv_wc_status_str(wc->status)));
        wc->wr_id >= is_receive ? --waiting : --posted;
      }
      return first;
    }
    if (wc->wr_id >= is_receive) {
      const std::uint64_t slot = wc->wr_id - is_receive;
      require(node.receive(wc->wr_id, receive_offset + slot * receive_bytes, receive_bytes) == 0, "receive");
    } else {
      --posted;
      on_success();
    }
  }
}

void post_receives(Node& node) {
  for (std::uint64_t slot = 0; slot < receives; ++slot) {
    require(node.receive(1000 + slot, receive_offset + slot * receive_bytes, receive_bytes) == 0, "receive");
  }
}

int survive(const TemporaryDirectory& directory, Stage& stage) {
  Node node(options(directory));
  Random random(seed());
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    if (round > 1) node.recycle();
    stage.survivor.put(node.address(), round);
    const Address peer = stage.peer.take(round);
    node.connect(peer);
    post_receives(node);
    stage.survivor_ready = round;
    require(eventually([&] { return stage.peer_ready == round; }), "the peer never came");
    const ibv_wc failure = talk_until_failure(node, peer, random, [&] { ++stage.operations; });
    require(failure.status == IBV_WC_RETRY_EXC_ERR, fmt::format("failed as {}", ibv_wc_status_str(failure.status)));
    const Time::rep killed_at = stage.killed_at;
    require(killed_at != 0, "failed before the peer was killed");
    const Time::rep took = now().time_since_epoch().count() - killed_at;
    stage.longest = std::max(stage.longest.load(), took);
    require(Duration(took) <= told_within, fmt::format("round {}: told after {} ms", round, took / 1'000'000));
    stage.told = round;
  }
  return 0;
}

int live_until_killed(const TemporaryDirectory& directory, Stage& stage, std::uint32_t round) {
  Node node(options(directory));
  Random random(seed() + round);
  const Address survivor = stage.survivor.take(round);
  stage.peer.put(node.address(), round);
  node.connect(survivor);
  post_receives(node);
  stage.peer_ready = round;
  require(eventually([&] { return stage.survivor_ready == round; }), "the survivor never came");
  const ibv_wc failure = talk_until_failure(node, survivor, random, [] {});
  throw std::runtime_error(fmt::format("the peer itself failed: {}", ibv_wc_status_str(failure.status)));
}

std::uintmax_t bytes_in(const TemporaryDirectory& directory) {
  std::uintmax_t bytes = 0;
  for (const std::string& name : directory.names()) {
    std::error_code gone;
    const auto size = std::filesystem::file_size(directory.path() + "/" + name, gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

TEST(KilledPeer, IsToldOfInTimeAndLeavesNothingBehind) {
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed()));
  ChildProcess survivor([&] { return survive(directory, *stage); });
  Random random(seed());
  std::uintmax_t early = 0;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    stage->operations = 0;
    stage->killed_at = 0;
    ChildProcess peer([&] { return live_until_killed(directory, *stage, round); });
    const std::uint64_t operations = random.below(most_operations);
    ASSERT_TRUE(eventually([&] { return stage->survivor_ready == round && stage->peer_ready == round; }));
    ASSERT_TRUE(eventually([&] { return stage->operations >= operations; })) << "round " << round;
    stage->killed_at = now().time_since_epoch().count();
    peer.kill();
    ASSERT_TRUE(eventually([&] { return stage->told == round; })) << "round " << round;
    if (round == 5) early = bytes_in(directory);
  }
  EXPECT_LE(bytes_in(directory), early) << "each dead peer leaves something";
  EXPECT_EQ(survivor.wait(), 0);
  { const Node sweeper(options(directory)); }
  EXPECT_THAT(directory.names(), ::testing::ElementsAre("lock"));
  std::printf("told within %.1f ms at most\n", static_cast<double>(stage->longest) / 1e6);
}

}  // namespace
}  // namespace verbatim::process
