// Two processes dial each other at the same moment, again and again, and send before they are connected. Whatever
// becomes of the dials, both agree on it, and each message comes once, in order. A dial whose answers come too late, or
// never, ends by itself and doesn't touch the channel that the other's dial has made.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <numeric>
#include <vector>

#include "message_process/meeting.hpp"
#include "unit/control/raw_socket.hpp"

namespace verbatim::process {
namespace {

using namespace std::chrono_literals;
using transport::RawSocket;

constexpr std::uint64_t messages = 100;
constexpr std::uint64_t rounds_at_once = 1000;
constexpr std::uint64_t rounds_with_relay = 10;
constexpr Duration patience_of_a_dial = 300ms;

struct Stage {
  std::array<Doorstep, 2> doors;
  Doorstep relay_door;
  Barrier barrier;
  std::array<std::atomic<bool>, 2> has_second_channel{};
  std::atomic<std::uint64_t> rounds_of_one_channel{0};
};

// One of the two, and what it sends and receives in a round.
class Dialler {
 public:
  Dialler(Stage& stage, std::size_t self, const Config& config) : stage_(stage), self_(self), context_(config) {
    std::iota(numbers_.begin(), numbers_.end(), 0);
    stage_.doors[self].leave(worker_.listen());
  }

  [[nodiscard]] Worker& worker() { return worker_; }
  [[nodiscard]] std::string peer_address() const { return stage_.doors[1 - self_].address(); }

  void wait_for_peer() {
    stage_.barrier.wait(2, [&] { worker_.progress(); });
  }
  void send_all(Channel channel) {
    for (std::uint64_t& number : numbers_) sends_.push_back(channel.send(&number, sizeof(number), Tag{round_}));
  }
  void expect_all() {
    received_.fill(messages);
    for (std::uint64_t& word : received_) receives_.push_back(worker_.recv(&word, sizeof(word), Tag{round_}));
  }
  void finish_receives() {
    for (const Request& receive : receives_) finish(worker_, receive, fmt::format("a receive of round {}", round_));
    require(received_ == numbers_, fmt::format("round {}: another message, or another order", round_));
    receives_.clear();
  }
  void finish_sends() {
    for (const Request& send : sends_) finish(worker_, send, fmt::format("a send of round {}", round_));
    sends_.clear();
  }
  // None of them was seen by anybody.
  void expect_sends_to_fail() {
    for (const Request& send : sends_) {
      require(worker_.wait_for(send, patience), "a send on a dial that nobody answers hangs");
      require(send.completion().outcome == Outcome::not_delivered, to_string(send.completion().outcome));
    }
    sends_.clear();
  }
  // When both are through with this round's messages. Nothing of the round is left behind.
  void end_round(std::initializer_list<std::optional<Channel>> channels) {
    wait_for_peer();
    require(!worker_.probe(Tag{round_}).has_value(), fmt::format("round {}: a message too many", round_));
    for (std::optional<Channel> channel : channels) {
      if (!channel) continue;
      (void)channel->close();
      require(eventually([&] {
                worker_.progress();
                return channel->state() == ChannelState::closed;
              }),
              "a channel that doesn't close");
    }
    wait_for_peer();
    ++round_;
  }

 private:
  Stage& stage_;
  std::size_t self_;
  Context context_;
  Worker worker_{context_};
  std::uint64_t round_ = 1;
  std::array<std::uint64_t, messages> numbers_{};
  std::array<std::uint64_t, messages> received_{};
  std::vector<Request> sends_;
  std::vector<Request> receives_;
};

Config config_of() {
  Config config = plain_config();
  config.worker.wait = WaitMode::poll;
  return config;
}

void dial_at_once(Stage& stage, std::size_t self) {
  Dialler dialler(stage, self, config_of());
  for (std::uint64_t round = 1; round <= rounds_at_once; ++round) {
    dialler.wait_for_peer();
    Channel channel = dialler.worker().connect(dialler.peer_address());
    dialler.send_all(channel);
    dialler.expect_all();
    dialler.finish_sends();
    dialler.finish_receives();
    require(channel.state() == ChannelState::open, channel.reason_text());
    dialler.wait_for_peer();
    // The other's dial, if it didn't cross ours: it was through before ours began.
    const std::optional<Channel> second = dialler.worker().accept();
    stage.has_second_channel[self] = second.has_value();
    dialler.wait_for_peer();
    require(stage.has_second_channel[1 - self] == second.has_value(), "one has one channel, the other has two");
    if (self == 0 && !second) ++stage.rounds_of_one_channel;
    dialler.end_round({channel, second});
  }
}

TEST(CrossingDials, BetweenProcessesLoseNothingAndBothAgreeOnWhatBecameOfThem) {
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  const auto side = [&](std::size_t self) {
    use_soft_device(directory);
    dial_at_once(*stage, self);
  };
  PeerProcess one([&] { side(0); });
  PeerProcess other([&] { side(1); });
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(other.wait(), 0);
  EXPECT_GT(stage->rounds_of_one_channel, 0U) << "no two dials have crossed";
  RecordProperty("rounds_of_one_channel", std::to_string(stage->rounds_of_one_channel));
}

// Hands on what the dialler says at once, and what it is answered after `held_for`. A dial that gives up before then
// closes its connection, and what was held goes with it.
void relay(Stage& stage, Duration held_for) {
  const RawSocket listener = RawSocket::listening();
  stage.relay_door.leave(listener.address());
  for (std::uint64_t round = 1; round <= rounds_with_relay; ++round) {
    const RawSocket in = listener.accept();
    const RawSocket out = RawSocket::connected_to(stage.doors[1].address());
    std::string held;
    Time hand_on_at = never;
    for (bool connected = true; connected;) {
      std::array<pollfd, 2> ready{pollfd{in.fd(), POLLIN, 0}, pollfd{out.fd(), POLLIN, 0}};
      ::poll(ready.data(), ready.size(), 10);
      std::array<char, 4096> bytes;
      const auto take = [&](const RawSocket& from) {
        const auto count = ::recv(from.fd(), bytes.data(), bytes.size(), 0);
        connected = connected && count > 0;
        return std::string_view(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
      };
      if (ready[0].revents != 0) (void)out.send(take(in));
      if (ready[1].revents != 0) {
        held += take(out);
        if (hand_on_at == never && held_for != Duration::max()) hand_on_at = now() + held_for;
      }
      if (now() < hand_on_at) continue;
      (void)in.send(held);
      held.clear();
    }
  }
}

// Whose dial gets no answer in time: the channel that the other dials is there all the same, and stays.
void dial_in_vain(Stage& stage) {
  Config config = config_of();
  config.bootstrap.connect_timeout = patience_of_a_dial;
  Dialler dialler(stage, 0, config);
  for (std::uint64_t round = 1; round <= rounds_with_relay; ++round) {
    dialler.wait_for_peer();
    Channel vain = dialler.worker().connect(stage.relay_door.address());
    dialler.send_all(vain);
    dialler.expect_all();
    dialler.finish_receives();
    dialler.expect_sends_to_fail();
    require(vain.reason() == Status::timed_out, fmt::format("it ended with: {}", to_string(vain.reason())));
    const std::optional<Channel> channel = dialler.worker().wait_accept(patience);
    require(channel && channel->state() == ChannelState::open, "the other's dial went with ours");
    dialler.send_all(*channel);
    dialler.finish_sends();
    dialler.end_round({channel});
  }
}

void dial_and_be_dialled(Stage& stage) {
  Dialler dialler(stage, 1, config_of());
  for (std::uint64_t round = 1; round <= rounds_with_relay; ++round) {
    dialler.wait_for_peer();
    Channel channel = dialler.worker().connect(dialler.peer_address());
    dialler.send_all(channel);
    dialler.expect_all();
    dialler.finish_sends();
    dialler.finish_receives();
    require(channel.state() == ChannelState::open, channel.reason_text());
    dialler.end_round({channel});
  }
}

class UnansweredDial : public testing::TestWithParam<Duration> {};

TEST_P(UnansweredDial, LeavesTheOthersChannelAlone) {
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  PeerProcess between([&] { relay(*stage, GetParam()); });
  PeerProcess vain([&] {
    use_soft_device(directory);
    dial_in_vain(*stage);
  });
  PeerProcess other([&] {
    use_soft_device(directory);
    dial_and_be_dialled(*stage);
  });
  EXPECT_EQ(vain.wait(), 0);
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(between.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Answers, UnansweredDial, testing::Values(2 * patience_of_a_dial, Duration::max()),
                         [](const auto& held) { return held.param == Duration::max() ? "Never" : "TooLate"; });

}  // namespace
}  // namespace verbatim::process
