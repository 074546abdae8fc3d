// A peer is killed and started again on the same address and port, again and again, under load. The one that it talks
// to reaches the new process at the first try, learns of the end of all that concerned the old one, and no message that
// was meant for the old one comes to the new.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "message_process/meeting.hpp"

namespace verbatim::process {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t lives = 50;
constexpr std::size_t window = 16;
constexpr std::size_t long_words = (std::size_t{256} << 10) / sizeof(std::uint64_t);
constexpr std::uint64_t most_messages_of_a_life = 3000;
constexpr Tag short_tag{1};
constexpr Tag long_tag{2};
constexpr Tag reply_tag{3};
// A dial begins when the peer listens; a busy machine may let either wait.
constexpr Duration connected_within = 2s;

// The dead are told of by their connections' ends; a queue pair has all the time that a busy machine takes.
Config config_of() {
  Config config = plain_config();
  config.rc.ack_timeout = 1s;
  return config;
}

struct Stage {
  Doorstep door;
  std::atomic<std::uint32_t> listening{0};   // the life that listens
  std::atomic<std::uint64_t> operations{0};  // that the survivor has finished with it
};

// Every word of every message is the number of the life that it is meant for.
void serve(Stage& stage, const TemporaryDirectory& directory, std::uint32_t life) {
  use_soft_device(directory);
  Context context(config_of());
  Worker worker(context);
  if (life == 1) {
    stage.door.leave(worker.listen());
  } else {
    require(worker.listen(stage.door.address()) == stage.door.address(), "it listens elsewhere");
  }
  stage.listening = life;
  std::optional<Channel> channel = worker.wait_accept(patience);
  require(channel.has_value(), "nobody connected");
  std::uint64_t word = 0;
  std::vector<std::uint64_t> many(long_words);
  Request next = worker.recv(&word, sizeof(word), short_tag);
  Request next_long = worker.recv(many.data(), many.size() * sizeof(word), long_tag);
  const std::uint64_t reply = life;
  for (;;) {  // until it is killed
    worker.progress();
    if (next.done()) {
      require_ok(next.completion(), "a message");
      require(word == life, fmt::format("life {} got a message for life {}", life, word));
      finish(worker, channel->send(&reply, sizeof(reply), reply_tag), "a reply");
      next = worker.recv(&word, sizeof(word), short_tag);
    }
    if (next_long.done()) {
      require_ok(next_long.completion(), "a long message");
      require(many.front() == life && many.back() == life, "a long message for another life");
      next_long = worker.recv(many.data(), many.size() * sizeof(word), long_tag);
    }
  }
}

// What the survivor has under way with one life of its peer.
class Talk {
 public:
  Talk(Worker& worker, Channel channel, std::uint64_t life)
      : worker_(worker), channel_(channel), life_(life), many_(long_words, life), replies_(window) {
    for (std::size_t i = 0; i < window; ++i) exchange(i);
    long_ = channel_.send(many_.data(), many_.size() * sizeof(life_), long_tag);
  }

  void until_the_end(std::atomic<std::uint64_t>& operations) {
    while (channel_.state() == ChannelState::open) {
      worker_.progress();
      for (std::size_t i = 0; i < window; ++i) {
        if (!receives_[i].ok()) continue;
        require(replies_[i] == life_, fmt::format("a reply of life {} to life {}", replies_[i], life_));
        ++operations;
        exchange(i);
      }
      if (!long_.ok()) continue;
      ++operations;
      long_ = channel_.send(many_.data(), many_.size() * sizeof(life_), long_tag);
    }
    for (const Request& receive : receives_) expect_ended(receive);
    expect_ended(long_);
    require(channel_.reason_text().find(channel_.peer()) != std::string::npos, channel_.reason_text());
  }

 private:
  void exchange(std::size_t i) {
    receives_[i] = worker_.recv(&replies_[i], sizeof(life_), reply_tag, exact_tag, channel_.id());
    (void)channel_.send(&life_, sizeof(life_), short_tag);
  }
  void expect_ended(const Request& request) {
    require(worker_.wait_for(request, patience), "a request to the dead hangs");
    require(request.ok() || request.completion().status != Status::ok, "a request to the dead ended as nothing");
  }

  Worker& worker_;
  Channel channel_;
  const std::uint64_t life_;
  std::vector<std::uint64_t> many_;
  std::vector<std::uint64_t> replies_;
  std::array<Request, window> receives_;
  Request long_;
};

void survive(Stage& stage, const TemporaryDirectory& directory) {
  use_soft_device(directory);
  Context context(config_of());
  Worker worker(context);
  for (std::uint32_t life = 1; life <= lives; ++life) {
    const Time deadline = now() + patience;
    while (stage.listening != life) {
      worker.progress();
      require(now() < deadline, fmt::format("life {} never began", life));
    }
    const Time start = now();
    Channel channel = worker.connect(stage.door.address());
    require(worker.wait_open(channel), fmt::format("life {}: {}", life, channel.reason_text()));
    require(now() - start < connected_within, fmt::format("life {} was connected late", life));
    Talk(worker, channel, life).until_the_end(stage.operations);
    require(worker.counters().unexpected_bytes == 0, "messages of the dead are kept");
  }
}

TEST(RestartedPeer, IsReachedAtOnceAndGetsNothingThatWasMeantForTheDead) {
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  PeerProcess survivor([&] { survive(*stage, directory); });
  Random random(seed());
  for (std::uint32_t life = 1; life <= lives; ++life) {
    SCOPED_TRACE("life " + std::to_string(life) + ", seed " + std::to_string(seed()));
    PeerProcess peer([&] { serve(*stage, directory, life); });
    const std::uint64_t enough = stage->operations + 1 + random.below(most_messages_of_a_life);
    ASSERT_TRUE(eventually([&] { return stage->operations >= enough; }));
    ::kill(peer.pid(), SIGKILL);
    ASSERT_EQ(peer.wait(), -SIGKILL) << "it had ended by itself";
  }
  EXPECT_EQ(survivor.wait(), 0);
}

}  // namespace
}  // namespace verbatim::process
