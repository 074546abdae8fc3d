// A process is stopped for less time than its peer's retries last. Nothing is lost, repeated or reordered.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "base/random.hpp"
#include "process/support.hpp"

namespace verbatim::process {
namespace {

constexpr std::uint64_t messages = 60'000;
constexpr int stops = 6;
constexpr std::chrono::milliseconds stopped_for{200};
constexpr std::uint8_t timeout_code = 15;  // 134 ms, tried 8 times
constexpr std::uint32_t window = 32;
constexpr std::uint32_t message_bytes = 256;

struct Stage {
  Mailbox sender;
  Mailbox receiver;
  std::atomic<std::uint64_t> received{0};
};

NodeOptions options(const TemporaryDirectory& directory) {
  NodeOptions options = options_in(directory);
  options.timeout = timeout_code;
  return options;
}

void fill(Node& node, std::size_t offset, std::uint64_t number) {
  auto* words = reinterpret_cast<std::uint64_t*>(node.memory() + offset);
  for (std::size_t i = 0; i < message_bytes / sizeof *words; ++i) words[i] = number * 0x9e3779b97f4a7c15 + i;
}

bool holds(Node& node, std::size_t offset, std::uint64_t number) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(node.memory() + offset);
  for (std::size_t i = 0; i < message_bytes / sizeof *words; ++i) {
    if (words[i] != number * 0x9e3779b97f4a7c15 + i) return false;
  }
  return true;
}

int send_all(const TemporaryDirectory& directory, Stage& stage) {
  Node node(options(directory));
  stage.sender.put(node.address(), 1);
  node.connect(stage.receiver.take(1));
  std::uint64_t posted = 0;
  for (std::uint64_t ended = 0; ended < messages; ++ended) {
    for (; posted < messages && posted - ended < window; ++posted) {
      const std::size_t offset = posted % window * message_bytes;
      fill(node, offset, posted);
      require(node.send(posted, offset, message_bytes) == 0, "send");
    }
    node.finish(ended, patience);
  }
  return 0;
}

int receive_all(const TemporaryDirectory& directory, Stage& stage) {
  Node node(options(directory));
  const auto post = [&](std::uint64_t number) {
    require(node.receive(number, number % window * message_bytes, message_bytes) == 0, "receive");
  };
  for (std::uint64_t number = 0; number < window; ++number) post(number);
  stage.receiver.put(node.address(), 1);
  node.connect(stage.sender.take(1));
  for (std::uint64_t number = 0; number < messages; ++number) {
    node.finish(number, patience);
    require(holds(node, number % window * message_bytes, number), "a message arrived otherwise than it was sent");
    post(number + window);
    stage.received = number + 1;
  }
  // The sender's last acknowledgements are still to go out.
  require(eventually([&] { return (void)node.poll(), stage.sender.number == 2; }), "the sender never ended");
  return 0;
}

TEST(StoppedPeer, LosesNothing) {
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed()));
  ChildProcess receiver([&] { return receive_all(directory, *stage); });
  ChildProcess sender([&] { return send_all(directory, *stage); });
  Random random(seed());
  std::uint64_t next = 0;
  for (int stop = 0; stop < stops; ++stop) {
    next += 1 + random.below(messages / stops - 1);
    ASSERT_TRUE(eventually([&] { return stage->received >= next; }));
    const pid_t victim = random.chance(0.5) ? receiver.pid() : sender.pid();
    ASSERT_EQ(::kill(victim, SIGSTOP), 0);
    std::this_thread::sleep_for(stopped_for);
    ASSERT_EQ(::kill(victim, SIGCONT), 0);
  }
  EXPECT_EQ(sender.wait(), 0);
  stage->sender.number = 2;
  EXPECT_EQ(receiver.wait(), 0);
  EXPECT_EQ(stage->received, messages);
}

}  // namespace
}  // namespace verbatim::process
