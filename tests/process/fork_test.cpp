// A program with an open device forks under traffic. Whatever the child does, the parent's messages arrive, and right.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "process/support.hpp"

namespace verbatim::process {
namespace {

constexpr int forks = 100;
constexpr std::uint32_t message_bytes = 64 * 1024;  // taken from the parent's memory, not from a ring
constexpr std::uint64_t messages_per_fork = 20;

struct Stage {
  Mailbox parent;
  Mailbox peer;
  std::atomic<bool> over{false};
};

void fill(std::byte* memory, std::uint64_t number) {
  for (std::uint32_t i = 0; i < message_bytes; ++i) memory[i] = static_cast<std::byte>(number * 31 + i * 7 + (i >> 8));
}

int receive_all(const NodeOptions& options, Stage& stage) {
  Node node(options);
  require(node.receive(0, 0, message_bytes) == 0, "receive");
  stage.peer.put(node.address(), 1);
  node.connect(stage.parent.take(1));
  std::vector<std::byte> expected(message_bytes);
  for (std::uint64_t number = 0; number < forks * messages_per_fork; ++number) {
    node.finish(number, patience);
    fill(expected.data(), number);
    require(std::equal(expected.begin(), expected.end(), node.memory()),
            "a message arrived otherwise than it was sent");
    require(node.receive(number + 1, 0, message_bytes) == 0, "receive");
  }
  require(eventually([&] { return (void)node.poll(), stage.over.load(); }), "the parent never ended");
  return 0;
}

enum class Ending { exit_at_once, run_libc, run_program };
constexpr int endings = 3;

[[noreturn]] void end_child(Ending ending) {
  switch (ending) {
    case Ending::exit_at_once:
      break;
    case Ending::run_libc: {
      std::vector<std::unique_ptr<char[]>> blocks;
      for (int i = 0; i < 1000; ++i) blocks.push_back(std::make_unique<char[]>(4096));
      std::fill_n(blocks.back().get(), 4096, 'x');
      break;
    }
    case Ending::run_program:
      ::execl("/bin/true", "true", nullptr);
      ::_exit(98);
  }
  ::_exit(0);
}

class Fork : public ::testing::TestWithParam<bool> {};

TEST_P(Fork, DoesNotDisturbTheParent) {
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  NodeOptions options = options_in(directory);
  options.mappable = GetParam();
  ChildProcess peer([&] { return receive_all(options, *stage); });
  Node node(options);
  stage->parent.put(node.address(), 1);
  node.connect(stage->peer.take(1));
  std::uint64_t number = 0;
  for (int round = 0; round < forks; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) end_child(static_cast<Ending>(round % endings));
    for (std::uint64_t i = 0; i < messages_per_fork; ++i, ++number) {
      fill(node.memory(), number);
      ASSERT_EQ(node.send(number, 0, message_bytes), 0);
      ASSERT_NO_THROW(node.finish(number, patience)) << "fork " << round;
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "child " << round << " ended with " << status;
  }
  stage->over = true;
  EXPECT_EQ(peer.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Memory, Fork, ::testing::Bool(),
                         [](const auto& memory) { return memory.param ? "Mappable" : "OfTheProgram"; });

}  // namespace
}  // namespace verbatim::process
