// A sender that has its completions, closes its worker and ends its process before the receiver has posted anything.
// What was said to be accepted is there when it is asked for; of a long message whose bytes were never taken there is
// an error, soon, and never a wait without end.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "message_process/meeting.hpp"
#include "unit/transport/payload.hpp"

namespace verbatim::process {
namespace {

using namespace std::chrono_literals;
using transport::test::Bytes;
using transport::test::pattern;

constexpr auto nap = 2s;
constexpr Duration told_within = 5s;
constexpr std::size_t eager_bytes = 8192;
constexpr Tag tag{5};

enum class Sender : std::uint8_t {
  waits_in_close,  // longer than the receiver sleeps
  gives_up,        // and is gone when the receiver wakes
};

Config config_of(Sender sender) {
  Config config = plain_config();
  config.eager.max_bytes = eager_bytes;
  config.bootstrap.close_timeout = sender == Sender::gives_up ? 100ms : 30s;
  return config;
}

struct Stage {
  Meeting meeting;
  std::atomic<std::uint32_t> senders_gone{0};
};

// Ends the process, as a program does that returns from main().
void send_and_exit(const TemporaryDirectory& directory, Stage& stage, Sender sender, std::size_t bytes) {
  use_soft_device(directory);
  const Bytes data = pattern(bytes, bytes);
  {
    Context context(config_of(sender));
    Worker worker(context);
    Channel channel = connect_to_peer(worker, stage.meeting.door);
    stage.meeting.wait(worker);
    stage.meeting.wait_asleep();  // the receiver is not in progress() any more
    const Request send = channel.send(data.data(), bytes, tag);
    if (bytes <= eager_bytes) {
      finish(worker, send, "a short message");
    } else {
      require(!send.done(), "done, though nobody can have taken it");
    }
  }
  std::exit(0);
}

void sleep_then_receive(const TemporaryDirectory& directory, Stage& stage, Sender sender, std::size_t bytes) {
  use_soft_device(directory);
  Context context(config_of(sender));
  Worker worker(context);
  const Channel channel = receive_peer(worker, stage.meeting.door);
  stage.meeting.wait(worker);
  stage.meeting.wait_asleep();
  std::this_thread::sleep_for(nap);  // what this is about: the receiver is late
  require((stage.senders_gone == 1) == (sender == Sender::gives_up), "the sender is gone, or not, against the plan");
  Bytes data(bytes);
  const Request receive = worker.recv(data.data(), bytes, tag, exact_tag, channel.id());
  require(worker.wait_for(receive, told_within), "neither data nor an error");
  if (bytes > eager_bytes && sender == Sender::gives_up) {
    const Completion& how = receive.completion();
    require(how.outcome == Outcome::not_delivered && how.status == Status::peer_gone,
            fmt::format("{}, {}", to_string(how.outcome), to_string(how.status)));
    require(channel.state() == ChannelState::closed && channel.reason() == Status::peer_gone, channel.reason_text());
    require(channel.reason_text().find(channel.peer()) != std::string::npos,
            fmt::format("the reason doesn't name {}: {}", channel.peer(), channel.reason_text()));
    return;
  }
  require_ok(receive.completion(), "a message whose sender is gone");
  require(data == pattern(bytes, bytes), "other bytes than were sent");
}

class SenderExit : public testing::TestWithParam<std::tuple<Sender, std::size_t>> {};

TEST_P(SenderExit, LeavesWhatWasAcceptedAndNothingThatHangs) {
  const auto [sender, bytes] = GetParam();
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  PeerProcess receiver([&, sender = sender, bytes = bytes] { sleep_then_receive(directory, *stage, sender, bytes); });
  PeerProcess exiting([&, sender = sender, bytes = bytes] { send_and_exit(directory, *stage, sender, bytes); });
  EXPECT_EQ(exiting.wait(), 0);
  stage->senders_gone = 1;
  EXPECT_EQ(receiver.wait(), 0);
}

std::string name_of(const testing::TestParamInfo<std::tuple<Sender, std::size_t>>& parameters) {
  const auto [sender, bytes] = parameters.param;
  return fmt::format("{}{}", sender == Sender::gives_up ? "Gone" : "Waiting", bytes);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SenderExit,
                         testing::Combine(testing::Values(Sender::waits_in_close, Sender::gives_up),
                                          testing::Values(std::size_t{1}, eager_bytes, eager_bytes + 1)),
                         name_of);

}  // namespace
}  // namespace verbatim::process
