// The target of one-sided work sleeps in a system call and polls nothing. Its device serves all the same.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "process/support.hpp"

namespace verbatim::process {
namespace {

constexpr std::uint32_t repetitions = 100;
constexpr std::uint32_t large = 256 * 1024;
constexpr std::size_t counter_offset = 512 * 1024;
constexpr std::size_t result_offset = 768 * 1024;
constexpr Duration promptly = std::chrono::milliseconds(500);  // much more than a wake-up takes on a busy machine

struct Stage {
  Mailbox active;
  Mailbox sleeper;
  std::atomic<Time::rep> longest{0};
};

class SleepingPeer : public ::testing::TestWithParam<bool> {};

// Sleeps in read(2) until the other end of the pipe is closed, and then looks at what it holds.
int sleep_and_serve(const NodeOptions& options, Stage& stage, int pipe) {
  Node node(options);
  std::memset(node.memory(), 0x5a, options.bytes);
  std::memset(node.memory() + counter_offset, 0, sizeof(std::uint64_t));
  stage.sleeper.put(node.address(), 1);
  node.connect(stage.active.take(1));
  stage.sleeper.put(node.address(), 2);
  char byte;
  require(::read(pipe, &byte, 1) == 0, "read of the pipe");
  std::uint64_t counted = 0;
  std::memcpy(&counted, node.memory() + counter_offset, sizeof counted);
  require(counted == repetitions, "the counter was not added to as often as was said");
  for (std::uint32_t i = 0; i < large; ++i) {
    require(node.memory()[i] == static_cast<std::byte>(i * 7), "what was written is not there");
  }
  return 0;
}

int work_on_sleeper(const NodeOptions& options, Stage& stage) {
  Node node(options);
  stage.active.put(node.address(), 1);
  const Address sleeper = stage.sleeper.take(1);
  node.connect(sleeper);
  (void)stage.sleeper.take(2);
  for (std::uint32_t i = 0; i < large; ++i) node.memory()[i] = static_cast<std::byte>(i * 7);
  const auto timed = [&](int posted) {
    require(posted == 0, "post");
    const Time begun = now();
    node.finish(0, patience);
    stage.longest = std::max(stage.longest.load(), (now() - begun).count());
  };
  for (std::uint64_t i = 0; i < repetitions; ++i) {
    timed(node.read(0, result_offset, 64, sleeper, large));
    require(node.memory()[result_offset] == std::byte{0x5a}, "READ brought something else");
    timed(node.fetch_add(0, result_offset, 1, sleeper, counter_offset));
    std::uint64_t before = 0;
    std::memcpy(&before, node.memory() + result_offset, sizeof before);
    require(before == i, "FETCH_ADD brought something else");
    timed(node.write(0, 0, large, sleeper, 0));
    timed(node.write(0, 0, 8, sleeper, 0));
  }
  return 0;
}

TEST_P(SleepingPeer, IsReadWrittenAndAddedToPromptly) {
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  NodeOptions options = options_in(directory);
  options.mappable = GetParam();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ChildProcess sleeper([&] {
    ::close(ends[1]);
    return sleep_and_serve(options, *stage, ends[0]);
  });
  ::close(ends[0]);
  ChildProcess active([&] {
    ::close(ends[1]);
    return work_on_sleeper(options, *stage);
  });
  EXPECT_EQ(active.wait(), 0);
  ::close(ends[1]);
  EXPECT_EQ(sleeper.wait(), 0);
  EXPECT_LE(Duration(stage->longest), promptly);
  std::printf("%.2f ms at most\n", static_cast<double>(stage->longest) / 1e6);
}

INSTANTIATE_TEST_SUITE_P(Memory, SleepingPeer, ::testing::Bool(),
                         [](const auto& memory) { return memory.param ? "Mappable" : "OfTheProgram"; });

}  // namespace
}  // namespace verbatim::process
