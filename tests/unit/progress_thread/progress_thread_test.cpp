// Workers with a progress thread of their own: peers are answered whatever the program does, and both threads are never
// in the engine at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "message_process/meeting.hpp"

namespace verbatim::process {
namespace {

constexpr std::size_t long_bytes = std::size_t{1} << 20;

[[nodiscard]] Config config_of(WaitMode wait, bool progress_thread) {
  Config config = plain_config();
  config.worker.wait = wait;
  config.worker.progress_thread = progress_thread;
  return config;
}

// A worker with a channel to the other.
struct Side {
  explicit Side(const Config& config) : context(config), worker(context) {}
  Context context;
  Worker worker;
  Channel channel;
};

// Whatever is asked has an end, or the test's own bound has.
void await(Side& side, const Request& request) {
  ASSERT_TRUE(side.worker.wait_for(request, patience));
  ASSERT_TRUE(request.ok()) << to_string(request.completion().status);
}

class ProgressThreadPlace : public ::testing::Test {
 protected:
  ProgressThreadPlace() { use_soft_device(directory_); }

 private:
  TemporaryDirectory directory_;
};

class ProgressThreadTest : public ProgressThreadPlace, public ::testing::WithParamInterface<WaitMode> {
 protected:
  // Of two sides of which at least one has a thread of its own.
  static void connect(Side& listener, Side& dialler) {
    const std::string address = listener.worker.listen();
    dialler.channel = dialler.worker.connect(address);
    const Time deadline = now() + patience;
    std::optional<Channel> accepted;
    while (!(accepted = listener.worker.accept()) || dialler.channel.state() == ChannelState::connecting) {
      ASSERT_LT(now(), deadline);
      listener.worker.progress();
      dialler.worker.progress();
      if (accepted) break;
    }
    listener.channel = *accepted;
    ASSERT_TRUE(dialler.worker.wait_open(dialler.channel)) << dialler.channel.reason_text();
  }
};

INSTANTIATE_TEST_SUITE_P(Waits, ProgressThreadTest,
                         ::testing::Values(WaitMode::poll, WaitMode::event, WaitMode::adaptive), [](const auto& wait) {
                           return wait.param == WaitMode::poll    ? "Polling"
                                  : wait.param == WaitMode::event ? "Sleeping"
                                                                  : "Adaptive";
                         });

TEST_P(ProgressThreadTest, AnswersPeersWhileTheProgramMakesNoCall) {
  Side busy(config_of(GetParam(), true));
  Side peer(config_of(GetParam(), false));
  connect(busy, peer);
  Region counter = busy.worker.allocate(sizeof(std::uint64_t));
  std::vector<std::byte> target(long_bytes);
  const Request whole = busy.worker.recv(target.data(), target.size(), Tag{1});
  await(busy, busy.channel.send(counter.remote().encode().data(), RemoteRegion::encoded_bytes, Tag{2}));
  // From here on the program is busy with something else; only this side is waited for.
  RemoteRegion::Encoded encoded;
  await(peer, peer.worker.recv(encoded.data(), encoded.size(), Tag{2}));
  std::uint64_t before = 99;
  await(peer, peer.channel.fetch_add(5, RemoteRegion::decode(encoded), 0, &before));
  EXPECT_EQ(before, 0U);
  const std::vector<std::byte> source(long_bytes, std::byte{7});
  await(peer, peer.channel.send(source.data(), source.size(), Tag{1}));  // by rendezvous: the peer has to answer
  await(peer, peer.channel.flush());
  const Time deadline = now() + patience;
  while (!whole.done()) ASSERT_LT(now(), deadline);
  EXPECT_TRUE(whole.ok());
  EXPECT_EQ(whole.completion().bytes, source.size());
  EXPECT_EQ(target, source);
}

// Everything that a program can call, from one thread, while the library's own is in the engine all the time.
TEST_P(ProgressThreadTest, TakesTurnsWithEveryCall) {
  const std::uint32_t messages = GetParam() == WaitMode::poll ? 500 : 2000;
  constexpr std::size_t window = 32;
  Side a(config_of(GetParam(), true));
  Side b(config_of(GetParam(), true));
  connect(a, b);
  std::vector<std::uint32_t> received(messages);
  std::vector<Request> receives;
  for (std::size_t i = 0; i < window; ++i) {
    receives.push_back(b.worker.recv(&received[i], sizeof(std::uint32_t), Tag{1}));
  }
  std::vector<std::byte> bulk(64 * 1024, std::byte{3});
  Region region = b.worker.register_memory(bulk.data(), bulk.size());
  for (std::uint32_t sent = 0; sent < messages; ++sent) {
    Request send = a.channel.send(&sent, sizeof(sent), Tag{1});
    ASSERT_TRUE(a.worker.wait_for(send, patience));
    if (sent % 3 == 0) send = Request();  // let go of
    if (sent % 64 == 0) {
      const Request put = a.channel.put(bulk.data(), 4096, region.remote(), 4096);
      Request never = a.worker.recv(nullptr, 0, Tag{77});
      EXPECT_TRUE(a.worker.cancel(never));
      EXPECT_FALSE(a.worker.probe(Tag{78}));
      EXPECT_EQ(a.channel.state(), ChannelState::open);
      EXPECT_GT(a.channel.counters().messages_sent, 0U);
      EXPECT_EQ(a.worker.counters().rnr_naks, 0U);
      const Region passing = a.worker.allocate(4096);
      await(a, put);
    }
    if (sent + 1 < window) continue;
    const std::size_t oldest = (sent + 1 - window) % window;
    await(b, receives[oldest]);
    if (sent + 1 < messages) {
      receives[oldest] = b.worker.recv(&received[sent + 1], sizeof(std::uint32_t), Tag{1});
    }
  }
  for (const Request& receive : receives) await(b, receive);
  std::vector<std::uint32_t> expected(messages);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(received, expected);
  await(a, a.channel.close());
}

TEST_P(ProgressThreadTest, WakesWhoWaits) {
  const int rounds = GetParam() == WaitMode::poll ? 50 : 300;  // four threads that poll share two cores or more
  Side a(config_of(GetParam(), true));
  Side b(config_of(GetParam(), true));
  connect(a, b);
  const auto answer = [rounds](Side& side, bool begins) {
    for (int round = 0; round < rounds; ++round) {
      int heard = -1;
      const Request receive = side.worker.recv(&heard, sizeof(heard), Tag{1});
      if (begins) await(side, side.channel.send(&round, sizeof(round), Tag{1}));
      await(side, receive);
      ASSERT_EQ(heard, round);
      if (!begins) await(side, side.channel.send(&round, sizeof(round), Tag{1}));
    }
  };
  std::thread other([&] { answer(b, false); });
  answer(a, true);
  other.join();
}

TEST_P(ProgressThreadTest, EndsWithItsWorkerWhateverIsUnderWay) {
  std::optional<Side> leaving(config_of(GetParam(), true));
  Side staying(config_of(GetParam(), true));
  connect(*leaving, staying);
  Region region = leaving->worker.allocate(4096);
  Request receive = leaving->worker.recv(region.data(), region.size(), Tag{1});
  Request from_who_leaves = staying.worker.recv(nullptr, 0, Tag{2}, exact_tag, staying.channel.id());
  leaving.reset();
  EXPECT_TRUE(receive.done());
  EXPECT_EQ(receive.completion().status, Status::canceled);
  ASSERT_TRUE(staying.worker.wait_for(from_who_leaves, patience));
  EXPECT_FALSE(from_who_leaves.ok());
}

TEST_P(ProgressThreadTest, LeavesNothingToArmFor) {
  Side side(config_of(GetParam(), true));
  try {
    (void)side.worker.arm();
    FAIL() << "it was armed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("worker.progress_thread"));
  }
}

// The lists of processors that each thread of this process may run on, in the kernel's words.
[[nodiscard]] std::vector<std::string> masks_of_threads() {
  std::vector<std::string> masks;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    constexpr std::string_view key = "Cpus_allowed_list:\t";
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(key)) masks.push_back(line.substr(key.size()));
    }
  }
  return masks;
}

TEST_F(ProgressThreadPlace, RunsWhereItIsPutAndLeavesTheCallersMaskAlone) {
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(mine), &mine), 0);
  int core = 0;
  while (!CPU_ISSET(core, &mine)) ++core;
  const auto pinned = [&] {
    const auto masks = masks_of_threads();
    return std::count(masks.begin(), masks.end(), std::to_string(core));
  };
  const auto before = pinned();
  Config config = config_of(WaitMode::event, true);
  config.worker.progress_core = core;
  const Side side(config);
  EXPECT_EQ(pinned(), before + 1);
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&mine, &after));
}

TEST_F(ProgressThreadPlace, IsRefusedACoreThatIsNotThere) {
  Config config = config_of(WaitMode::event, true);
  config.worker.progress_core = 8191;
  try {
    const Side side(config);
    FAIL() << "it runs";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::permission);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("8191"));
  }
}

}  // namespace
}  // namespace verbatim::process
