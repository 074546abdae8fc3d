// What may be pinned is used up: by a program that runs, which goes on and copies, and at its start, which it is told
// at once.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <chrono>
#include <vector>

#include "message_process/meeting.hpp"
#include "unit/transport/payload.hpp"

namespace verbatim::process {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using transport::test::Bytes;
using transport::test::pattern;

constexpr std::size_t large_bytes = 48U << 20;
constexpr const char* room_for_queues = "16MiB";
constexpr std::uint64_t room_for_queues_bytes = 16U << 20;
constexpr Tag tag{1};

// Which of the two may pin its queues, and hardly more.
enum class Poor : std::uint8_t { sender, receiver };

void send_large(Meeting& meeting, Worker& worker, Channel& channel, Poor poor) {
  const Bytes data = pattern(large_bytes, 1);
  if (poor == Poor::sender) {
    try {
      (void)worker.register_memory(const_cast<std::byte*>(data.data()), data.size());
      throw std::logic_error("registered beyond the limit");
    } catch (const Error& error) {
      require(error.code() == ErrorCode::no_space || error.code() == ErrorCode::permission, error.what());
    }
  }
  send_word(worker, channel, 1, tag);
  const Request send = channel.send(data.data(), data.size(), tag);
  finish(worker, send, "a long message");
  require(send.completion().outcome == Outcome::accepted, "not copied: this test's limit doesn't bite");
  send_word(worker, channel, 2, tag);
  meeting.wait(worker);
}

void receive_large(Meeting& meeting, Worker& worker, Channel& channel) {
  require(receive_word(worker, channel, tag) == 1, "another word came");
  Bytes data(large_bytes);
  finish(worker, worker.recv(data.data(), data.size(), tag, exact_tag, channel.id()), "a long message");
  require(data == pattern(large_bytes, 1), "other bytes than were sent");
  require(receive_word(worker, channel, tag) == 2, "another word came");
  meeting.wait(worker);
}

class PinnedLimitInUse : public testing::TestWithParam<Poor> {};

TEST_P(PinnedLimitInUse, LetsALongMessageComeInPieces) {
  const TemporaryDirectory directory;
  const Shared<Meeting> meeting;
  const auto limit = [](bool limited) { return limited ? room_for_queues : ""; };
  PeerProcess receiver([&] {
    const bool poor = GetParam() == Poor::receiver;
    use_soft_device(directory, {{"MAX_PINNED_BYTES", limit(poor)}});
    Context context(plain_config());
    Worker worker(context);
    Channel channel = receive_peer(worker, meeting->door);
    receive_large(*meeting, worker, channel);
    require(!poor || worker.counters().pinned_bytes <= room_for_queues_bytes, "more is pinned than may be");
  });
  PeerProcess sender([&] {
    const bool poor = GetParam() == Poor::sender;
    use_soft_device(directory, {{"MAX_PINNED_BYTES", limit(poor)}});
    Context context(plain_config());
    Worker worker(context);
    Channel channel = connect_to_peer(worker, meeting->door);
    send_large(*meeting, worker, channel, GetParam());
    require(!poor || worker.counters().pinned_bytes <= room_for_queues_bytes, "more is pinned than may be");
  });
  EXPECT_EQ(receiver.wait(), 0);
  EXPECT_EQ(sender.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Of, PinnedLimitInUse, testing::Values(Poor::sender, Poor::receiver),
                         [](const auto& poor) { return poor.param == Poor::sender ? "Sender" : "Receiver"; });

// The kernel doesn't hold those to RLIMIT_MEMLOCK who have the right to lock.
void limit_locked_memory(rlim_t bytes) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3]{};
  require(::syscall(SYS_capget, &header, rights) == 0, "capget");
  rights[0].effective &= ~(1U << CAP_IPC_LOCK);
  require(::syscall(SYS_capset, &header, rights) == 0, "capset");
  const rlimit few{bytes, bytes};
  require(::setrlimit(RLIMIT_MEMLOCK, &few) == 0, "setrlimit");
}

struct Told {
  std::array<char, 800> sentence{};
};

// Starts, and connects to a peer that has room; what it is told in place of a channel.
std::string start(const TemporaryDirectory& directory, const Doorstep& door) {
  use_soft_device(directory, {{"MAX_PINNED_BYTES", "64KiB"}});
  try {
    Context context(plain_config());
    Worker worker(context);
    Channel channel = worker.connect(door.address());
    if (worker.wait_open(channel)) return "open";
    return fmt::format("{}: {}", to_string(channel.reason()), channel.reason_text());
  } catch (const Error& error) {
    return fmt::format("{}: {}", to_string(error.code()), error.what());
  }
}

class PinnedLimitAtStart : public testing::Test {
 protected:
  // The sentence of a process whose device pins 64 KiB, and how long it took to get there. `prepare`: what it does
  // first.
  std::pair<std::string, Duration> sentence(const std::function<void()>& prepare = [] {}) {
    const TemporaryDirectory directory;
    const Shared<Meeting> meeting;
    const Shared<Told> told;
    PeerProcess rich([&] {
      use_soft_device(directory);
      Context context(plain_config());
      Worker worker(context);
      meeting->door.leave(worker.listen());
      meeting->wait(worker);
    });
    (void)meeting->door.address();
    const Time begun = now();
    Time ended = begun;
    PeerProcess poor([&] {
      prepare();
      start(directory, meeting->door).copy(told->sentence.data(), told->sentence.size() - 1);
    });
    EXPECT_EQ(poor.wait(), 0);
    ended = now();
    meeting->barrier.wait(2);
    EXPECT_EQ(rich.wait(), 0);
    return {told->sentence.data(), ended - begun};
  }
};

TEST_F(PinnedLimitAtStart, OfThisProcessIsNamedWithItsValueAtOnce) {
  const auto [sentence, took] = this->sentence([] { limit_locked_memory(64 * 1024); });
  std::printf("%s\n", sentence.c_str());
  EXPECT_THAT(sentence, HasSubstr("RLIMIT_MEMLOCK"));
  EXPECT_THAT(sentence, HasSubstr("64KiB"));
  EXPECT_LT(took, 2s);
}

TEST_F(PinnedLimitAtStart, OfTheDeviceAloneIsToldApartFromThatOfThisProcess) {
  const auto [sentence, took] = this->sentence();
  std::printf("%s\n", sentence.c_str());
  EXPECT_THAT(sentence, HasSubstr("what it may pin"));
  EXPECT_LT(took, 2s);
}

}  // namespace
}  // namespace verbatim::process
