// A partner is killed in the middle of long messages, or of a flood, again and again. Each request of the survivor ends
// once, within the time that it was configured with, in a way that it may end; the reason names the partner; nothing of
// the survivor is used up by it, and its other partner notices nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "message_process/meeting.hpp"
#include "unit/transport/payload.hpp"

namespace verbatim::process {
namespace {

using namespace std::chrono_literals;
using transport::test::Bytes;
using transport::test::pattern;

constexpr std::uint32_t rounds = 6;
constexpr std::size_t large_bytes = 8U << 20;
constexpr std::size_t small_bytes = 64;
constexpr std::uint32_t max_requests = 64;
constexpr std::size_t window = 8;  // of each kind of request
constexpr Tag traffic_tag{1};
constexpr Tag region_tag{2};
constexpr Tag other_tag{3};
constexpr Tag unused_tag{4};

constexpr Duration ack_timeout = 134ms;
constexpr std::uint8_t retry_count = 7;  // fewer take a partner for dead whom a busy machine lets wait
// Every try may last four times as long as was asked, and after it the queue pair is drained.
constexpr Duration drain_limit = 2s;
constexpr Duration scheduling = 1s;  // of a busy machine
constexpr Duration told_within = ack_timeout * 4 * (retry_count + 1) + drain_limit + scheduling;

enum class Traffic : std::uint8_t { long_messages, flood };

constexpr Traffic traffic_of(std::uint32_t round) {
  return round % 2 == 0 ? Traffic::long_messages : Traffic::flood;
}

struct Stage {
  Doorstep door;
  std::atomic<bool> other_is_in{false};
  std::atomic<std::uint32_t> round{0};       // that the survivor is in
  std::atomic<std::uint64_t> operations{0};  // of the survivor in this round
  std::atomic<Time::rep> killed_at{0};
  std::atomic<std::uint32_t> told{0};  // rounds that the survivor has finished
  std::atomic<bool> other_may_go{false};
};

Config config_of() {
  Config config = plain_config();
  config.rc.ack_timeout = ack_timeout;
  config.rc.retry_count = retry_count;
  config.matching.max_requests = max_requests;
  return config;
}

// What the two keep doing with each other until one of them is gone. One slot is one request after the other.
class Talk {
 public:
  Talk(Worker& worker, Channel channel, Traffic traffic)
      : worker_(worker),
        channel_(channel),
        bytes_(traffic == Traffic::flood ? small_bytes : large_bytes),
        source_(pattern(bytes_, 1)),
        region_(worker.allocate(bytes_)) {
    const RemoteRegion::Encoded encoded = region_.remote().encode();
    const Request told = channel_.send(encoded.data(), encoded.size(), region_tag);
    RemoteRegion::Encoded theirs;
    finish(worker_, worker_.recv(theirs.data(), theirs.size(), region_tag, exact_tag, channel_.id()), "the region");
    finish(worker_, told, "the region");
    peers_region_ = RemoteRegion::decode(theirs);
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].kind = static_cast<Kind>(i % kinds);
    for (Slot& slot : slots_) slot.target.resize(bytes_);
    for (Slot& slot : slots_) issue(slot);
  }

  // False: the partner is gone.
  bool go_on(std::atomic<std::uint64_t>& operations) {
    worker_.progress();
    for (Slot& slot : slots_) {
      if (!slot.request.done()) continue;
      if (!slot.request.ok()) return false;
      if (slot.kind == Kind::receive) require(slot.target == source_, "a message with other bytes");
      ++operations;
      issue(slot);
    }
    return channel_.state() == ChannelState::open;
  }
  // All that is under way ends, how it may.
  void expect_the_end(Time deadline) {
    for (const Slot& slot : slots_) {
      require(worker_.wait_for(slot.request, deadline - now()), fmt::format("{} hangs", name_of(slot)));
      endings_.push_back(slot.request.completion());
      if (!slot.request.ok()) expect_ending(slot);
    }
    require(channel_.state() == ChannelState::closed, "the channel stays open");
    require(channel_.reason_text().find(channel_.peer()) != std::string::npos,
            fmt::format("the reason doesn't name {}: {}", channel_.peer(), channel_.reason_text()));
  }
  // What had come whole, and no receive had taken, can still be had.
  void take_what_is_left() {
    Bytes left(bytes_);
    for (;;) {
      const Request receive = worker_.recv(left.data(), bytes_, traffic_tag, exact_tag, channel_.id());
      require(receive.done(), "a receive from the dead waits");
      if (!receive.ok()) return;
      require(left == source_, "a message with other bytes");
    }
  }
  // Nothing of it changes any more.
  void expect_no_second_end() const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Completion& is = slots_[i].request.completion();
      require(is.outcome == endings_[i].outcome && is.status == endings_[i].status,
              fmt::format("{} has ended twice", name_of(slots_[i])));
    }
  }

 private:
  enum class Kind : std::uint8_t { send, receive, put, get, flush };
  static constexpr std::size_t kinds = 5;
  struct Slot {
    Kind kind{};
    Request request;
    Bytes target;
  };

  void issue(Slot& slot) {
    switch (slot.kind) {
      case Kind::send:
        slot.request = channel_.send(source_.data(), bytes_, traffic_tag);
        break;
      case Kind::receive:
        slot.target.assign(bytes_, std::byte{});
        slot.request = worker_.recv(slot.target.data(), bytes_, traffic_tag, exact_tag, channel_.id());
        break;
      case Kind::put:
        slot.request = channel_.put(source_.data(), bytes_, peers_region_, 0);
        break;
      case Kind::get:
        slot.request = channel_.get(slot.target.data(), bytes_, peers_region_, 0);
        break;
      case Kind::flush:
        slot.request = channel_.flush();
        break;
    }
  }
  static const char* name_of(const Slot& slot) {
    constexpr const char* names[kinds] = {"a send", "a receive", "a put", "a get", "a flush"};
    return names[static_cast<std::size_t>(slot.kind)];
  }
  static void expect_ending(const Slot& slot) {
    const Completion& how = slot.request.completion();
    const bool may_be_unknown = slot.kind == Kind::send || slot.kind == Kind::put;
    require(how.outcome == Outcome::not_delivered || (may_be_unknown && how.outcome == Outcome::unknown),
            fmt::format("{} ended {}", name_of(slot), to_string(how.outcome)));
    require(how.status == Status::peer_gone || how.status == Status::device_failed,
            fmt::format("{} ended with {}", name_of(slot), to_string(how.status)));
  }

  Worker& worker_;
  Channel channel_;
  std::size_t bytes_;
  Bytes source_;
  Region region_;
  RemoteRegion peers_region_;
  std::vector<Slot> slots_ = std::vector<Slot>(window * kinds);
  std::vector<Completion> endings_;
};

// How many requests there are room for: of receives, and of all others.
std::pair<std::size_t, std::size_t> count_room(Worker& worker, Channel& channel) {
  const auto until_refused = [](auto request_one) {
    std::vector<Request> taken;
    do {
      taken.push_back(request_one());
      require(taken.size() <= 2 * max_requests, "no end of requests");
    } while (taken.back().completion().status != Status::no_resources);
    taken.pop_back();
    return taken;
  };
  std::vector<Request> receives = until_refused([&] { return worker.recv(nullptr, 0, unused_tag); });
  const std::size_t room_for_receives = receives.size();
  for (Request& receive : receives) require(worker.cancel(receive), "not canceled");
  const std::vector<Request> flushes = until_refused([&] { return channel.flush(); });
  for (const Request& flush : flushes) finish(worker, flush, "a flush");
  return {room_for_receives, flushes.size()};
}

void talk_to_other(Worker& worker, Channel& other, std::uint64_t number) {
  send_word(worker, other, number, other_tag);
  require(receive_word(worker, other, other_tag) == number, "the other partner says another word");
}

void survive(const TemporaryDirectory& directory, Stage& stage) {
  use_soft_device(directory);
  Context context(config_of());
  Worker worker(context);
  Channel other = receive_peer(worker, stage.door);
  talk_to_other(worker, other, 0);
  stage.other_is_in = true;
  const auto room = count_room(worker, other);
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    const std::optional<Channel> partner = worker.wait_accept(patience);
    require(partner.has_value(), "no partner came");
    Talk talk(worker, *partner, traffic_of(round));
    stage.round = round;
    while (talk.go_on(stage.operations)) {
    }
    const Time::rep killed_at = stage.killed_at;
    require(killed_at != 0, "failed before the partner was killed: " + partner->reason_text());
    talk.expect_the_end(Time(Duration(killed_at)) + told_within);
    talk.take_what_is_left();
    talk_to_other(worker, other, round);
    talk.expect_no_second_end();
    stage.told = round;
  }
  require(count_room(worker, other) == room, "dead partners have used up requests");
  require(worker.counters().unexpected_bytes == 0, "messages of the dead are kept");
}

void be_the_other(const TemporaryDirectory& directory, Stage& stage) {
  use_soft_device(directory);
  Context context(config_of());
  Worker worker(context);
  Channel channel = connect_to_peer(worker, stage.door);
  std::uint64_t word = 0;
  Request receive = worker.recv(&word, sizeof(word), other_tag);
  while (!stage.other_may_go) {
    if (!worker.wait_for(receive, 10ms)) continue;
    require_ok(receive.completion(), "a word");
    send_word(worker, channel, word, other_tag);
    receive = worker.recv(&word, sizeof(word), other_tag);
  }
}

void live_until_killed(const TemporaryDirectory& directory, Stage& stage, std::uint32_t round) {
  use_soft_device(directory);
  Context context(config_of());
  Worker worker(context);
  const Channel channel = connect_to_peer(worker, stage.door);
  Talk talk(worker, channel, traffic_of(round));
  std::atomic<std::uint64_t> operations{0};
  while (talk.go_on(operations)) {
  }
  throw std::runtime_error("the survivor is gone: " + channel.reason_text());
}

TEST(KilledPartner, EndsEveryRequestOnceAndInTimeAndTheOthersGoOn) {
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed()));
  PeerProcess survivor([&] { survive(directory, *stage); });
  PeerProcess other([&] { be_the_other(directory, *stage); });
  // The first who comes is the other.
  ASSERT_TRUE(eventually([&] { return stage->other_is_in.load(); }));
  Random random(seed());
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    stage->operations = 0;
    stage->killed_at = 0;
    PeerProcess partner([&] { live_until_killed(directory, *stage, round); });
    const std::uint64_t operations = random.below(traffic_of(round) == Traffic::flood ? 1'000 : 30);
    ASSERT_TRUE(eventually([&] { return stage->round == round && stage->operations >= operations; }))
        << "round " << round;
    stage->killed_at = now().time_since_epoch().count();
    partner.kill();
    ASSERT_TRUE(eventually([&] { return stage->told == round; })) << "round " << round;
  }
  EXPECT_EQ(survivor.wait(), 0);
  stage->other_may_go = true;
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace verbatim::process
