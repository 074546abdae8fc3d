// Programs that sleep in epoll until their completion channel wakes them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

#include "base/random.hpp"
#include "process/support.hpp"

namespace verbatim::process {
namespace {

constexpr unsigned queue_pairs = 8;
constexpr std::uint32_t depth = 64;
constexpr std::uint32_t messages = 6400;  // of each queue pair
constexpr std::uint32_t message_bytes = 64;
constexpr int longest_sleep_ms = 500;  // with work pending it is a wake-up that got lost, not a busy machine

struct Stage {
  std::array<Mailbox, queue_pairs> sender;
  std::array<Mailbox, queue_pairs> receiver;
  std::atomic<std::uint64_t> sent{0};  // posted, that is
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::uint64_t> sleeps{0};
  std::atomic<bool> over{false};
};

NodeOptions options(const TemporaryDirectory& directory) {
  NodeOptions options = options_in(directory);
  options.queue_pairs = queue_pairs;
  options.depth = depth;
  options.events = true;
  return options;
}

// Sleeps until the channel is readable, and takes its event. False if the time ran out.
class Sleeper {
 public:
  explicit Sleeper(Node& node) : node_(node), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event interest{};
    interest.events = EPOLLIN;
    require(epoll_ >= 0 && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, node.channel()->fd, &interest) == 0, "epoll");
  }
  ~Sleeper() { ::close(epoll_); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  [[nodiscard]] bool sleep(int milliseconds) {
    epoll_event event{};
    int ready = 0;
    do {
      ready = ::epoll_wait(epoll_, &event, 1, milliseconds);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) return false;
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    require(node_.context().get_cq_event(node_.channel(), &cq, &cq_context) == 0, "get_cq_event");
    require(cq == node_.cq(), "an event of another completion queue");
    node_.context().ack_cq_events(cq, 1);
    return true;
  }

 private:
  Node& node_;
  int epoll_;
};

// Arm, poll until empty, then sleep: the order that loses nothing.
template <typename OnCompletion, typename Over>
void serve_events(Node& node, OnCompletion on_completion, Over over, const std::function<bool()>& work_is_pending,
                  Stage& stage) {
  Sleeper sleeper(node);
  while (!over()) {
    require(ibv_req_notify_cq(node.cq(), 0) == 0, "ibv_req_notify_cq");
    while (const auto wc = node.poll()) {
      require(wc->status == IBV_WC_SUCCESS, ibv_wc_status_str(wc->status));
      on_completion(*wc);
    }
    if (over()) return;
    const bool pending = work_is_pending();
    ++stage.sleeps;
    const bool woken = sleeper.sleep(longest_sleep_ms);
    require(woken || !pending || over(), "slept although work was pending");
  }
}

int receive_all(const TemporaryDirectory& directory, Stage& stage) {
  Node node(options(directory));
  const auto post = [&](std::uint64_t id) {
    const auto queue_pair = static_cast<unsigned>(id % queue_pairs);
    require(node.receive(id, id % (queue_pairs * depth) * message_bytes, message_bytes, queue_pair) == 0, "receive");
  };
  for (std::uint64_t id = 0; id < queue_pairs * depth; ++id) post(id);
  for (unsigned i = 0; i < queue_pairs; ++i) {
    stage.receiver[i].put(node.address(i), 1);
    node.connect(stage.sender[i].take(1), i);
  }
  for (unsigned i = 0; i < queue_pairs; ++i) stage.receiver[i].number = 2;
  serve_events(
      node,
      [&](const ibv_wc& wc) {
        post(wc.wr_id + queue_pairs * depth);
        ++stage.received;
      },
      [&] { return stage.received == std::uint64_t{queue_pairs} * messages; },
      [&] { return stage.sent > stage.received; }, stage);
  require(eventually([&] { return (void)node.poll(), stage.over.load(); }), "the sender never ended");
  return 0;
}

// Bursts of random length, then silence until everything has arrived: the receiver goes to sleep each time.
int send_all(const TemporaryDirectory& directory, Stage& stage) {
  Node node(options(directory));
  Random random(seed());
  for (unsigned i = 0; i < queue_pairs; ++i) {
    stage.sender[i].put(node.address(i), 1);
    node.connect(stage.receiver[i].take(1), i);
  }
  (void)stage.receiver.back().take(2);
  std::array<std::uint32_t, queue_pairs> posted{};
  constexpr std::uint64_t all = std::uint64_t{queue_pairs} * messages;
  Sleeper sleeper(node);
  for (std::uint64_t ended = 0, total = 0; total < all;) {
    const std::uint64_t burst = 1 + random.below(random.chance(0.1) ? depth : 4);
    for (std::uint64_t i = 0; i < burst && total < all; ++i) {
      auto queue_pair = static_cast<unsigned>(random.below(queue_pairs));
      while (posted[queue_pair] == messages) queue_pair = (queue_pair + 1) % queue_pairs;
      require(node.send(total++, 0, message_bytes, queue_pair) == 0, "send");
      ++posted[queue_pair];
      ++stage.sent;
    }
    // The sender sleeps too.
    while (ended < total) {
      require(ibv_req_notify_cq(node.cq(), 0) == 0, "ibv_req_notify_cq");
      for (auto wc = node.poll(); wc; wc = node.poll()) {
        require(wc->status == IBV_WC_SUCCESS, ibv_wc_status_str(wc->status));
        ++ended;
      }
      if (ended < total) require(sleeper.sleep(longest_sleep_ms), "the sender slept although work was pending");
    }
    require(eventually([&] { return stage.received == total; }), "a message was not taken");
  }
  return 0;
}

TEST(EventMode, NeverSleepsWithWorkPending) {
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed()));
  ChildProcess receiver([&] { return receive_all(directory, *stage); });
  ChildProcess sender([&] { return send_all(directory, *stage); });
  EXPECT_EQ(sender.wait(), 0);
  stage->over = true;
  EXPECT_EQ(receiver.wait(), 0);
  EXPECT_EQ(stage->received, std::uint64_t{queue_pairs} * messages);
  std::printf("%llu messages, %llu sleeps of the receiver\n", static_cast<unsigned long long>(stage->received),
              static_cast<unsigned long long>(stage->sleeps));
}

// Each round opens a device, lets two of its queue pairs talk to each other, and closes everything while an event is
// still waiting.
TEST(EventMode, IsTornDownAtOnceAThousandTimes) {
  constexpr int rounds = 1000;
  constexpr Duration at_once = std::chrono::seconds(1);
  const TemporaryDirectory directory;
  NodeOptions options = options_in(directory);
  options.queue_pairs = 2;
  options.events = true;
  options.bytes = 4096;
  Duration longest{};
  for (int round = 0; round < rounds; ++round) {
    auto node = std::make_unique<Node>(options);
    node->connect(node->address(1), 0);
    node->connect(node->address(0), 1);
    ASSERT_EQ(ibv_req_notify_cq(node->cq(), 0), 0);
    ASSERT_EQ(node->receive(1, 0, 64, 1), 0);
    ASSERT_EQ(node->send(2, 64, 64, 0), 0);
    Sleeper sleeper(*node);
    ASSERT_TRUE(sleeper.sleep(longest_sleep_ms)) << "round " << round;
    ASSERT_EQ(ibv_req_notify_cq(node->cq(), 0), 0);
    const Time begun = now();
    node.reset();
    longest = std::max(longest, now() - begun);
    ASSERT_LT(longest, at_once) << "round " << round;
  }
  std::printf("%.1f ms at most\n", static_cast<double>(longest.count()) / 1e6);
}

}  // namespace
}  // namespace verbatim::process
