// Queue pairs that fail between processes, again and again: because packets or acknowledgements are lost, and because
// the other process was stopped for longer than a queue pair waits.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <vector>

#include "message_process/meeting.hpp"
#include "unit/transport/payload.hpp"

namespace verbatim::process {
namespace {

using namespace std::chrono_literals;
using transport::test::Bytes;
using transport::test::pattern;

constexpr std::uint64_t messages = 3000;
constexpr std::size_t window = 32;
constexpr Tag tag{1};
constexpr Tag region_tag{2};

constexpr std::size_t bytes_of(std::uint64_t number) {
  constexpr std::size_t sizes[] = {0, 8, 900, 9000, 100'000};
  return sizes[number % std::size(sizes)];
}

struct Stage {
  Meeting meeting;
  std::array<std::atomic<std::uint64_t>, 2> recoveries{};
  std::array<std::atomic<std::uint64_t>, 2> received{};
};

// Both send all messages and receive all of the other's, and add to a number of the other's.
void exchange(Stage& stage, Worker& worker, Channel& channel, std::size_t self) {
  const Region region = worker.allocate(sizeof(std::uint64_t));
  const RemoteRegion::Encoded own = region.remote().encode();
  RemoteRegion::Encoded encoded;
  const Request region_received = worker.recv(encoded.data(), encoded.size(), region_tag);
  finish(worker, channel.send(own.data(), own.size(), region_tag), "the region");
  finish(worker, region_received, "the other's region");
  const RemoteRegion counter = RemoteRegion::decode(encoded);

  std::vector<Bytes> data(window);
  std::vector<Bytes> received(window);
  std::vector<Request> sends(window);
  std::vector<Request> receives(window);
  std::vector<Request> adds(window);
  const auto receive = [&](std::uint64_t number) {
    received[number % window].assign(bytes_of(number), std::byte{0xee});
    receives[number % window] = worker.recv(received[number % window].data(), bytes_of(number), tag);
  };
  for (std::uint64_t number = 0; number < window; ++number) receive(number);
  for (std::uint64_t number = 0; number < messages; ++number) {
    const std::size_t slot = number % window;
    if (number >= window) {
      finish(worker, sends[slot], "a send");
      finish(worker, adds[slot], "an addition");
    }
    data[slot] = pattern(bytes_of(number), number);
    sends[slot] = channel.send(data[slot].data(), data[slot].size(), tag);
    adds[slot] = channel.fetch_add(1, counter, 0, nullptr);
    const std::uint64_t oldest = number < window / 2 ? messages : number - window / 2;
    if (oldest == messages) continue;
    finish(worker, receives[oldest % window], "a receive");
    require(received[oldest % window] == pattern(bytes_of(oldest), oldest),
            fmt::format("message {} is another", oldest));
    stage.received[self] = oldest + 1;
    if (oldest + window < messages) receive(oldest + window);
  }
  for (std::uint64_t number = messages - window / 2; number < messages; ++number) {
    finish(worker, receives[number % window], "one of the last receives");
    require(received[number % window] == pattern(bytes_of(number), number),
            fmt::format("message {} is another", number));
  }
  finish(worker, channel.flush(), "a flush");
  for (const Request& add : adds) finish(worker, add, "an addition");
  stage.meeting.wait(worker);
  std::uint64_t added = 0;
  std::memcpy(&added, region.data(), sizeof(added));
  require(added == messages, fmt::format("{} additions were executed, not {}", added, messages));
  require(!worker.probe(Tag{0}, TagMask{0}).has_value(), "a message too many");
  stage.recoveries[self] = channel.counters().recoveries;
  stage.meeting.wait(worker);
}

class FailingQueuePairs : public testing::TestWithParam<bool> {
 protected:
  // `config` is for both; the soft devices have `knobs`.
  void start(const Config& config, SoftKnobs knobs) {
    for (std::size_t self = 0; self < 2; ++self) {
      sides_[self] = std::make_unique<PeerProcess>([&, self] {
        use_soft_device(directory_, knobs);
        Context context(config);
        Worker worker(context);
        Channel channel =
            self == 0 ? receive_peer(worker, stage_->meeting.door) : connect_to_peer(worker, stage_->meeting.door);
        exchange(*stage_, worker, channel, self);
      });
    }
  }
  void expect_both_ended_well() {
    for (const auto& side : sides_) EXPECT_EQ(side->wait(), 0);
    EXPECT_EQ(stage_->recoveries[0], stage_->recoveries[1]);
  }

  const TemporaryDirectory directory_;
  const Shared<Stage> stage_;
  std::array<std::unique_ptr<PeerProcess>, 2> sides_;
};

Config config_of(bool write_queue) {
  Config config = plain_config();
  config.worker.wait = write_queue ? WaitMode::poll : WaitMode::adaptive;
  return config;
}

// A packet that is lost is a queue pair that has failed, whether it is a request or an acknowledgement.
TEST_P(FailingQueuePairs, LoseAndDoubleNothing) {
  Config config = config_of(GetParam());
  config.rc.retry_count = 0;
  config.rc.ack_timeout = 8ms;
  start(config, {{"FAULTS", "drop:rate=0.001"}});
  expect_both_ended_well();
  EXPECT_GT(stage_->recoveries[0], 3U) << "no queue pair has failed";
}

// A queue pair waits for about 70 ms here.
TEST_P(FailingQueuePairs, OfAPartnerThatWasStoppedComeBack) {
  Config config = config_of(GetParam());
  config.rc.ack_timeout = 8ms;
  start(config, {});
  for (int stops = 1; stops <= 3; ++stops) {
    const std::uint64_t enough = stage_->received[0] + messages / 5;
    ASSERT_TRUE(eventually([&] { return stage_->received[0] >= enough; }));
    ASSERT_EQ(::kill(sides_[1]->pid(), SIGSTOP), 0);
    std::this_thread::sleep_for(700ms);
    ASSERT_EQ(::kill(sides_[1]->pid(), SIGCONT), 0);
  }
  expect_both_ended_well();
}

INSTANTIATE_TEST_SUITE_P(With, FailingQueuePairs, testing::Values(false, true),
                         [](const auto& ring) { return ring.param ? "WriteQueues" : "Receives"; });

}  // namespace
}  // namespace verbatim::process
