// Two processes flood each other with a million short messages each, through queues of a few entries, and for a second
// nobody so much as looks. Everything arrives once and in order, what waits is bounded, and afterwards each side may
// send exactly as much ahead as at the start.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <memory>
#include <thread>

#include "message_process/meeting.hpp"
#include "sanitizers.hpp"

namespace verbatim::process {
namespace {

using namespace std::chrono_literals;

// Sanitized code takes many times as long, and has taken every path after a few thousand messages.
constexpr std::uint64_t default_messages = under_address_sanitizer ? 100'000 : 1'000'000;

// With four messages on the way at a time, two processes that never run at once exchange a few thousand in a second.
// Where others keep the processors busy so much, the flood ends early, and says how far it came.
constexpr auto flood_limit = 80s;

constexpr auto nap = 1s;
constexpr Tag flood_tag{1};
constexpr Tag probe_tag{2};
constexpr std::uint64_t unexpected_budget = 1 << 20;
constexpr std::uint32_t max_requests = 4096;
constexpr std::size_t most_sends = 2 * max_requests;  // more than there are requests, so that some are refused
constexpr std::size_t most_receives = max_requests / 4;
// Of a side: its budget, an entry for each message that the peer may have offered, and requests. A million messages
// that were kept would take more than ten times as much.
constexpr std::uint64_t memory_bound = 12 << 20;

struct Shape {
  const char* name;
  WaitMode wait;  // poll: through a ring in each direction
  std::uint32_t send_depth;
  std::uint32_t signal_interval;
  std::uint32_t credits;  // messages that are taken though the peer doesn't look
  std::uint32_t untold;   // of them, may be in the peer's hands: a lone credit that it has read and not answered
  std::uint32_t part;     // of the messages, to flood with

  // VERBATIM_FLOOD_MESSAGES is for a longer or shorter run.
  [[nodiscard]] std::uint64_t messages() const {
    const char* text = std::getenv("VERBATIM_FLOOD_MESSAGES");
    return (text == nullptr ? default_messages : std::strtoull(text, nullptr, 0)) / part;
  }
};

constexpr std::uint32_t receive_depth = 4;
constexpr std::uint32_t ring_bytes = 4096;
constexpr std::uint32_t lines_kept = 9;                                  // of a ring, for credits that go alone
constexpr std::uint32_t lines_for_words = ring_bytes / 64 - lines_kept;  // each word takes one

Config config_of(const Shape& shape) {
  Config config = plain_config();
  config.rc.receive_depth = receive_depth;
  config.rc.repost_batch = receive_depth / 2;
  config.rc.send_depth = shape.send_depth;
  config.rc.signal_interval = shape.signal_interval;
  config.rc.rnr_retry_count = 0;  // a receiver that ran dry would end the channel at once
  config.eager.max_bytes = 256;
  config.matching.unexpected_bytes = unexpected_budget;
  config.matching.max_requests = max_requests;
  config.worker.wait = shape.wait;
  config.write_queue.bytes = ring_bytes;
  config.write_queue.promote_after = 1;
  return config;
}

constexpr std::uint64_t word_of(std::uint64_t number) {
  return (number + 1) * 0x9e3779b97f4a7c15;
}

// The most memory that this process has had in use so far.
std::uint64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  throw std::runtime_error("/proc/self/status has no VmHWM");
}

// How many messages each side sends: as many as were planned, or have been sent when the time was up.
struct Totals {
  std::atomic<std::uint64_t> of_listener;
  std::atomic<std::uint64_t> of_dialler;
};

class Side {
 public:
  Side(Worker& worker, Channel channel, std::atomic<std::uint64_t>& ours, const std::atomic<std::uint64_t>& theirs)
      : worker_(worker), channel_(channel), ours_(ours), theirs_(theirs) {}

  // As many as are taken now. A refusal says that all requests are under way, and nothing else.
  void send() {
    while (!sends_.empty() && sends_.front().done()) {
      require_ok(sends_.front().completion(), "a send");
      sends_.pop_front();
    }
    for (int burst = 0; burst < 64 && sent_ < ours_ && sends_.size() < most_sends; ++burst) {
      std::uint64_t& word = words_[sent_ % most_sends];
      word = word_of(sent_);
      Request request = channel_.send(&word, sizeof(word), flood_tag);
      if (request.done() && request.completion().status == Status::no_resources) {
        ++refused_;
        return;
      }
      if (request.done()) require_ok(request.completion(), "a send");
      sends_.push_back(std::move(request));
      ++sent_;
    }
  }
  void receive() {
    while (posted_ < theirs_ && receives_.size() < most_receives) {
      std::uint64_t& word = received_words_[posted_ % most_receives];
      receives_.push_back(worker_.recv(&word, sizeof(word), flood_tag, exact_tag, channel_.id()));
      ++posted_;
    }
    while (!receives_.empty() && receives_.front().done()) {
      require_ok(receives_.front().completion(), "a receive");
      const std::uint64_t number = received();
      require(receives_.front().completion().bytes == sizeof(std::uint64_t), "a message of another length");
      require(received_words_[number % most_receives] == word_of(number),
              fmt::format("not message {} came, but another", number));
      receives_.pop_front();
    }
  }
  void progress() {
    if (worker_.progress() == 0) std::this_thread::yield();
  }
  void stop_sending() { ours_ = sent_; }
  [[nodiscard]] bool finished() const { return sent_ == ours_ && sends_.empty() && received() == theirs_; }
  // Receives for messages that were not sent for lack of time.
  void cancel_receives() {
    for (Request& receive : receives_) require(worker_.cancel(receive), "a message came that was not counted");
  }
  [[nodiscard]] std::uint64_t received() const { return posted_ - receives_.size(); }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  [[nodiscard]] std::string where() const {
    return fmt::format("sent {} of {}, of which {} are pending, received {} of {}", sent_, ours_.load(), sends_.size(),
                       received(), theirs_.load());
  }

 private:
  Worker& worker_;
  Channel channel_;
  std::atomic<std::uint64_t>& ours_;
  const std::atomic<std::uint64_t>& theirs_;
  std::uint64_t sent_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t refused_ = 0;
  std::deque<Request> sends_;
  std::deque<Request> receives_;
  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(most_sends);
  std::vector<std::uint64_t> received_words_ = std::vector<std::uint64_t>(most_receives);
};

// How many messages are taken though the peer doesn't look: its credits. The next one waits, and all arrive.
std::uint32_t count_credits(Worker& worker, Channel& channel, std::vector<Request>& sends) {
  constexpr auto no_more = 50ms;  // a send slot that comes back is here long before
  static const std::uint64_t word = 7;
  for (std::uint32_t count = 0;; ++count) {
    require(count <= 1000, "no end of credits");
    sends.push_back(channel.send(&word, sizeof(word), probe_tag));
    if (!worker.wait_for(sends.back(), no_more)) return count;
    require_ok(sends.back().completion(), "a message within the credits");
  }
}

// Of this side and then of the other; both return their own.
std::uint32_t count_credits_in_turn(Meeting& meeting, Worker& worker, Channel& channel, bool first) {
  std::uint32_t count = 0;
  for (const bool mine : {first, !first}) {
    finish(worker, channel.flush(), "the flush before");
    meeting.wait(worker);
    meeting.wait_asleep();  // nobody is in progress() any more
    std::vector<Request> sends;
    if (mine) count = count_credits(worker, channel, sends);
    meeting.wait_asleep();
    if (mine) {
      for (const Request& send : sends) finish(worker, send, "a message to a peer that didn't look");
      send_word(worker, channel, 0, probe_tag);
    } else {
      while (receive_word(worker, channel, probe_tag) != 0) {
      }
    }
    finish(worker, channel.flush(), "the flush behind");
    meeting.wait(worker);
  }
  return count;
}

// Rings, if there are to be some, are agreed on.
void warm_up(Worker& worker, Channel& channel) {
  for (std::uint64_t round = 0; round < 4; ++round) {
    send_word(worker, channel, round, probe_tag);
    require(receive_word(worker, channel, probe_tag) == round, "another word came");
  }
}

void expect_quiet(Worker& worker, const Channel& channel) {
  const WorkerCounters& counters = worker.counters();
  require(channel.state() == ChannelState::open, channel.reason_text());
  require(counters.rnr_naks == 0, fmt::format("{} times a receive was missing", counters.rnr_naks));
  require(counters.unexpected_bytes == 0, "something waits for ever");
}

void flood(const TemporaryDirectory& directory, Meeting& meeting, Totals& totals, const Shape& shape, bool listens) {
  use_soft_device(directory);
  Context context(config_of(shape));
  Worker worker(context);
  Channel channel = listens ? receive_peer(worker, meeting.door) : connect_to_peer(worker, meeting.door);
  warm_up(worker, channel);
  const std::uint32_t credits_at_start = count_credits_in_turn(meeting, worker, channel, listens);
  const auto all_are_back = [&](std::uint32_t credits) {
    return credits <= shape.credits && credits + shape.untold >= shape.credits;
  };
  require(all_are_back(credits_at_start), fmt::format("{} credits at the start", credits_at_start));

  const std::uint64_t pinned = worker.counters().pinned_bytes;
  const std::uint64_t memory = peak_memory_bytes();
  Side side(worker, channel, listens ? totals.of_listener : totals.of_dialler,
            listens ? totals.of_dialler : totals.of_listener);
  while (side.refused() == 0) side.send();
  meeting.wait_asleep();
  std::this_thread::sleep_for(nap);  // what this is about: nobody looks
  const Time awake = now() + nap;    // … and now nobody receives
  const Time limit = now() + flood_limit;
  while (now() < awake || (worker.counters().unexpected_bytes < unexpected_budget && now() < limit)) {
    side.send();
    side.progress();
  }
  for (bool stopped = false; !side.finished(); side.progress()) {
    if (!stopped && now() > limit) {
      side.stop_sending();
      stopped = true;
    }
    side.send();
    side.receive();
    require(now() < limit + 2 * flood_limit, side.where());
  }
  side.cancel_receives();
  finish(worker, channel.flush(), "the flush at the end");
  meeting.wait(worker);

  const std::uint64_t grown = peak_memory_bytes() - memory;
  const std::uint64_t waited = worker.counters().unexpected_peak;
  fmt::print("{}: {} messages received, {} bytes waited for receives, memory grew by {}\n",
             listens ? "listener" : "dialler", side.received(), waited, grown);
  expect_quiet(worker, channel);
  require(waited >= unexpected_budget, "the flood was too small to show anything");
  require(waited < memory_bound, fmt::format("{} bytes waited", waited));
  // A sanitizer keeps what was freed.
  if (!under_address_sanitizer) require(grown < memory_bound, fmt::format("memory grew by {} bytes", grown));
  require(worker.counters().pinned_bytes == pinned,
          fmt::format("{} bytes were pinned, now {}", pinned, worker.counters().pinned_bytes));
  const std::uint32_t credits_at_end = count_credits_in_turn(meeting, worker, channel, listens);
  require(all_are_back(credits_at_end), fmt::format("{} credits at the end", credits_at_end));
  expect_quiet(worker, channel);
  meeting.wait_asleep();  // nobody closes before the other has looked
}

class MillionMessages : public testing::TestWithParam<Shape> {};

TEST_P(MillionMessages, EachWayAtSleepersArriveOnceAndLeaveAllCreditsAndBoundedMemory) {
  const TemporaryDirectory directory;
  const Shared<Meeting> meeting;
  const Shared<Totals> totals;
  totals->of_listener = totals->of_dialler = GetParam().messages();
  PeerProcess listener([&] { flood(directory, *meeting, *totals, GetParam(), true); });
  PeerProcess dialler([&] { flood(directory, *meeting, *totals, GetParam(), false); });
  EXPECT_EQ(listener.wait(), 0);
  EXPECT_EQ(dialler.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, MillionMessages,
                         testing::Values(Shape{"Receives", WaitMode::adaptive, 8, 2, receive_depth, 0, 1},
                                         Shape{"WriteQueues", WaitMode::poll, 16, 4, lines_for_words, lines_kept, 10}),
                         [](const auto& shape) { return std::string(shape.param.name); });

}  // namespace
}  // namespace verbatim::process
