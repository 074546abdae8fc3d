// Many processes connect to one at the same moment: to one that has room for all of them, and to others that run out of
// descriptors or queue pairs. Whoever gets in is served, whoever doesn't is told why, whoever was there before notices
// nothing, and when some have left there is room again.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "message_process/meeting.hpp"
#include "sanitizers.hpp"
#include "unit/transport/payload.hpp"

namespace verbatim::process {
namespace {

using namespace std::chrono_literals;
using transport::test::Bytes;
using transport::test::pattern;

constexpr std::size_t message_bytes = 3000;
constexpr Tag request_tag{1};
constexpr Tag reply_tag{2};
constexpr std::uint64_t is_reply = 1ULL << 32;

// Told apart by its first word, and to be checked by the rest.
Bytes message(std::uint64_t number) {
  Bytes bytes = pattern(message_bytes, number);
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

// Processes that outnumber the cores a hundredfold wait here without turning.
class Gate {
 public:
  Gate() { require(::pipe(ends_.data()) == 0, "no pipe"); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() {
    for (const int end : ends_) ::close(end);
  }
  void open_for(std::size_t processes) {
    const std::string tokens(processes, '.');
    require(::write(ends_[1], tokens.data(), tokens.size()) == static_cast<ssize_t>(tokens.size()), "a full pipe");
  }
  void pass() {
    char token = 0;
    require(::read(ends_[0], &token, 1) == 1, "no gate");
  }

 private:
  std::array<int, 2> ends_{};
};

// True as soon as it holds. Asks seldom, for the others' sake.
template <typename Holds>
bool holds_within(Duration limit, Holds holds) {
  const Time deadline = now() + limit;
  while (!holds()) {
    if (now() > deadline) return false;
    (void)::poll(nullptr, 0, 2);
  }
  return true;
}

struct Storm {
  std::uint32_t peers = 0;
  std::uint32_t descriptors = 0;   // of the server; 0: as many as it likes
  const char* queue_pairs = "";    // of its device
  Duration connect_timeout = 30s;  // of its peers
};

constexpr std::uint32_t most_peers = 256;
constexpr std::size_t longest_reason = 400;

struct Stage {
  Doorstep door;
  std::atomic<std::uint32_t> ready{0};
  std::atomic<std::uint32_t> served{0};
  std::atomic<Time::rep> last_served{0};
  std::atomic<std::uint32_t> refused{0};
  std::array<std::array<char, longest_reason>, most_peers> reasons{};
  std::atomic<std::uint32_t> rounds_of_resident{0};
  std::atomic<bool> resident_may_go{false};
  std::atomic<bool> server_may_go{false};
};

// Little memory for each of many peers.
Config small_config() {
  Config config = plain_config();
  config.rc.receive_depth = 16;
  config.rc.repost_batch = 8;
  config.rc.send_depth = 32;
  config.rc.signal_interval = 8;
  config.rc.pool_initial = 1;
  config.eager.max_bytes = 4096;
  config.worker.wait = WaitMode::event;
  return config;
}

class Server {
 public:
  explicit Server(Worker& worker) : worker_(worker) { expect_request(); }

  void serve() {
    (void)worker_.wait_for(receive_, 10ms);
    while (const std::optional<Channel> channel = worker_.accept()) channels_.push_back(*channel);
    while (!sends_.empty() && sends_.front().done()) {
      require_ok(sends_.front().completion(), "a reply");
      sends_.pop_front();
      replies_.pop_front();
    }
    if (receive_.done()) answer();
  }
  void expect_no_failure() const {
    for (const Channel& channel : channels_) {
      const bool failed = channel.reason() != Status::ok && channel.reason() != Status::peer_gone;
      require(!failed, channel.reason_text());
    }
  }

 private:
  void answer() {
    require_ok(receive_.completion(), "a request");
    const ChannelId source = receive_.completion().source;
    const auto from = std::ranges::find(channels_, source, &Channel::id);
    require(from != channels_.end(), "a request of nobody who was accepted");
    std::uint64_t number = 0;
    std::memcpy(&number, request_.data(), sizeof(number));
    require(request_ == message(number), "another request than was sent");
    replies_.push_back(message(number | is_reply));
    sends_.push_back(from->send(replies_.back().data(), replies_.back().size(), reply_tag));
    expect_request();
  }
  void expect_request() {
    request_.assign(message_bytes, std::byte{});
    receive_ = worker_.recv(request_.data(), request_.size(), request_tag);
  }

  Worker& worker_;
  std::vector<Channel> channels_;
  Bytes request_;
  Request receive_;
  std::deque<Bytes> replies_;
  std::deque<Request> sends_;
};

void run_server(const TemporaryDirectory& directory, Stage& stage, const Storm& storm) {
  if (storm.descriptors != 0) {
    const rlimit few{storm.descriptors, storm.descriptors};
    require(::setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
  }
  use_soft_device(directory, {{"MAX_QP", storm.queue_pairs}});
  Context context(small_config());
  Worker worker(context);
  stage.door.leave(worker.listen());
  Server server(worker);
  while (!stage.server_may_go) server.serve();
  server.expect_no_failure();
  require(worker.counters().rnr_naks == 0, "a receive was missing");
}

void talk(Worker& worker, Channel& channel, std::uint64_t number) {
  const Bytes request = message(number);
  Bytes reply(message_bytes);
  const Request receive = worker.recv(reply.data(), reply.size(), reply_tag, exact_tag, channel.id());
  finish(worker, channel.send(request.data(), request.size(), request_tag), "a request");
  finish(worker, receive, "a reply");
  require(reply == message(number | is_reply), "another reply than was sent");
}

// Was there before, and talks all the time.
void run_resident(const TemporaryDirectory& directory, Stage& stage) {
  use_soft_device(directory);
  Context context(small_config());
  Worker worker(context);
  Channel channel = connect_to_peer(worker, stage.door);
  while (!stage.resident_may_go) {
    talk(worker, channel, stage.rounds_of_resident);
    ++stage.rounds_of_resident;
  }
}

// Stays until it may go, whether it got in or not.
void run_peer(const TemporaryDirectory& directory, Stage& stage, const Storm& storm, Gate& start, Gate& end) {
  use_soft_device(directory);
  Config config = small_config();
  config.bootstrap.connect_timeout = storm.connect_timeout;
  Context context(config);
  Worker worker(context);
  const std::uint32_t number = stage.ready++;
  start.pass();
  Channel channel = worker.connect(stage.door.address());
  if (worker.wait_open(channel)) {
    talk(worker, channel, number);
    stage.last_served = now().time_since_epoch().count();
    ++stage.served;
  } else {
    const std::string reason = fmt::format("{}: {}", to_string(channel.reason()), channel.reason_text());
    reason.copy(stage.reasons[number].data(), longest_reason - 1);
    ++stage.refused;
  }
  end.pass();
}

void run_newcomer(const TemporaryDirectory& directory, Stage& stage) {
  use_soft_device(directory);
  Context context(small_config());
  Worker worker(context);
  Channel channel = connect_to_peer(worker, stage.door);
  talk(worker, channel, most_peers);
}

class StormOfProcesses : public testing::Test {
 protected:
  // Everybody is ready, then all connect; ends when each of them is in or refused. How long the slowest took.
  void blow(const Storm& storm) {
    server_ = std::make_unique<PeerProcess>([&] { run_server(directory_, *stage_, storm); });
    resident_ = std::make_unique<PeerProcess>([&] { run_resident(directory_, *stage_); });
    ASSERT_TRUE(holds_within(patience, [&] { return stage_->rounds_of_resident > 0; })) << "no traffic to harm";
    Gate start;
    Gate end;
    std::vector<std::unique_ptr<PeerProcess>> peers;
    for (std::uint32_t i = 0; i < storm.peers; ++i) {
      peers.push_back(std::make_unique<PeerProcess>([&] { run_peer(directory_, *stage_, storm, start, end); }));
    }
    ASSERT_TRUE(holds_within(60s, [&] { return stage_->ready == storm.peers; })) << "no storm comes up";
    const std::uint32_t rounds_before = stage_->rounds_of_resident;
    const Time begun = now();
    start.open_for(storm.peers);
    EXPECT_TRUE(holds_within(40s, [&] { return stage_->served + stage_->refused == storm.peers; }))
        << stage_->served << " were served and " << stage_->refused << " refused";
    took_ = Time(Duration(stage_->last_served)) - begun;
    EXPECT_GT(stage_->rounds_of_resident, rounds_before) << "the one that was there before waits";
    end.open_for(storm.peers);
    for (const auto& peer : peers) EXPECT_EQ(peer->wait(), 0);
  }
  // When the storm's peers have left.
  void expect_room_again() {
    PeerProcess newcomer([&] { run_newcomer(directory_, *stage_); });
    EXPECT_EQ(newcomer.wait(), 0);
  }
  void expect_calm() {
    stage_->resident_may_go = true;
    EXPECT_EQ(resident_->wait(), 0);
    stage_->server_may_go = true;
    EXPECT_EQ(server_->wait(), 0);
  }
  [[nodiscard]] std::vector<std::string> reasons() const {
    std::vector<std::string> all;
    for (const auto& reason : stage_->reasons) {
      if (reason[0] != '\0') all.emplace_back(reason.data());
    }
    return all;
  }

  TemporaryDirectory directory_;
  Shared<Stage> stage_;
  std::unique_ptr<PeerProcess> server_;
  std::unique_ptr<PeerProcess> resident_;
  Duration took_{};
};

TEST_F(StormOfProcesses, AllGetInAndAreServedInTime) {
  // Sanitized processes are too large for so many to be at once.
  const Storm storm{.peers = under_address_sanitizer ? 50U : 200U};
  blow(storm);
  EXPECT_EQ(stage_->served, storm.peers);
  EXPECT_THAT(reasons(), testing::IsEmpty());
  EXPECT_LT(took_, 30s);
  std::printf("all %u are served after %.2f s\n", storm.peers, std::chrono::duration<double>(took_).count());
  expect_calm();
}

TEST_F(StormOfProcesses, BeyondTheDescriptorsWaitsOrIsToldWhyAndHarmsNobody) {
  const Storm storm{.peers = 80, .descriptors = 64, .connect_timeout = 3s};
  blow(storm);
  EXPECT_GE(stage_->served, 16U) << "most descriptors are for peers";
  EXPECT_GT(stage_->refused, 0U) << "there were descriptors for all";
  EXPECT_THAT(reasons(), testing::Each(testing::AllOf(
                             testing::StartsWith("timed out"),
                             testing::AnyOf(testing::HasSubstr("bootstrap.connect_timeout"),
                                            testing::HasSubstr("accepted the connection, but said nothing")))));
  expect_room_again();
  expect_calm();
}

TEST_F(StormOfProcesses, BeyondTheQueuePairsIsRefusedWithUsedAndLimitAndHarmsNobody) {
  const Storm storm{.peers = 32, .queue_pairs = "8"};
  blow(storm);
  EXPECT_EQ(stage_->served, 7U) << "and the one that was there before";
  EXPECT_EQ(reasons().size(), 25U);
  EXPECT_THAT(reasons(),
              testing::Each(testing::AllOf(testing::StartsWith("no resources"), testing::HasSubstr("8 of 8"))));
  expect_room_again();
  expect_calm();
}

}  // namespace
}  // namespace verbatim::process
