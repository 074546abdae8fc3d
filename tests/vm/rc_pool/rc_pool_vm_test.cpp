// The pool of RC queue pairs on a kernel RDMA device: what a device may do that the simulated one doesn't, it does
// here.
#include <poll.h>

#include <cstdlib>
#include <functional>
#include <optional>

#include "base/monotonic_clock.hpp"
#include "device/ibverbs/provider.hpp"
#include "unit/qp/rc_pool/worker.hpp"

namespace verbatim::qp::testing {
namespace {

// The machine is emulated, and may have to share its processors.
constexpr Duration patience = 60s;

std::unique_ptr<device::Context> open_device() {
  const auto provider = device::make_ibverbs_provider();
  const char* wanted = std::getenv("VERBATIM_TEST_DEVICE");
  return provider->open(wanted != nullptr ? wanted : provider->list().at(0));
}

RcPoolSettings patient_pool() {
  auto settings = small_pool();
  settings.drain_limit = patience;
  return settings;
}

class KernelDevice : public ::testing::Test {
 protected:
  bool wait_until(const std::function<bool()>& predicate) {
    const Time deadline = clock.now() + patience;
    while (!predicate()) {
      if (clock.now() > deadline) return false;
    }
    return true;
  }
  std::vector<WorkCompletion> completions(Worker& worker, std::size_t count) {
    std::vector<WorkCompletion> all;
    EXPECT_TRUE(wait_until([&] {
      const auto some = worker.poll();
      all.insert(all.end(), some.begin(), some.end());
      return all.size() >= count;
    })) << all.size()
        << " of " << count;
    return all;
  }
  // How it was retired; what else completed until then is added to `ended`.
  Retired give_back(Worker& worker, std::unique_ptr<ReliableQueue> queue, std::vector<WorkCompletion>& ended) {
    worker.pool.give_back(std::move(queue), clock.now());
    std::vector<Retired> through;
    EXPECT_TRUE(wait_until([&] {
      const auto some = worker.poll();
      ended.insert(ended.end(), some.begin(), some.end());
      through = worker.pool.progress(clock.now());
      return !through.empty();
    }));
    return through.empty() ? Retired{} : through[0];
  }
  void post_sends(ReliableQueue& queue, std::uint32_t epoch, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      ASSERT_EQ(queue.post_send(WorkKind::send, epoch, {}, Signal::yes, Inline::no), 0);
  }

  MonotonicClock clock;
  Worker a{open_device(), patient_pool()};
  Worker b{open_device(), patient_pool()};
};

TEST_F(KernelDevice, CarriesMessagesThroughEightSlotsWithoutBeingRefused) {
  constexpr std::uint32_t rounds = 500;
  const auto naks = a.counter("rcvd_rnr_err");
  Lane lane{a.pool.lease(), b.pool.lease()};
  connect(a, b, lane, 1);
  ASSERT_EQ(b.post_receives(*lane.b, 1, 0, 8), 0);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) {
      const std::uint64_t number = round * 8 + i;
      const Segment segment{&number, sizeof(number), LKey{}};
      ASSERT_TRUE(wait_until([&] {
        for (const auto& completion : a.poll()) lane.a->on_send_completed(completion.id);
        return lane.a->send_slots_free() > 0;
      }));
      ASSERT_EQ(lane.a->post_send(WorkKind::send, 1, {&segment, 1}, Signal::no, Inline::yes), 0);
    }
    const auto received = completions(b, 8);
    for (std::uint64_t i = 0; i < 8; ++i) {
      ASSERT_FALSE(received[i].failed()) << to_string(received[i].status);
      std::uint64_t number = 0;
      std::memcpy(&number, b.slot(received[i].id.slot).address, sizeof(number));
      ASSERT_EQ(number, round * 8 + i);
    }
    ASSERT_EQ(b.post_receives(*lane.b, 1, 0, 8), 0);
  }
  EXPECT_LT(lane.a->counters().signalled, rounds * 8 * 3 / 4);
  EXPECT_EQ(a.counter("rcvd_rnr_err"), naks);
}

TEST_F(KernelDevice, EndsEachRequestOnceHoweverItsQueuePairCameToError) {
  constexpr std::uint32_t rounds = 60;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    SCOPED_TRACE(round);
    Lane lane{a.pool.lease(), b.pool.lease()};
    ASSERT_EQ(a.post_receives(*lane.a, round, 0, 16), 0) << "full";
    std::vector<WorkCompletion> ended;
    std::size_t accepted = 16;
    // Never connected; connected and in the middle of traffic; in ERR by itself because the peer has no receives left.
    if (round % 3 != 0) {
      connect(a, b, lane, round * 1000);
      ASSERT_EQ(b.post_receives(*lane.b, round, 0, round % 3 == 1 ? 8 : 4), 0);
      post_sends(*lane.a, round, 8);
      accepted += 8;
    }
    if (round % 3 == 2) {
      ASSERT_TRUE(wait_until([&] {
        const auto some = a.poll();
        ended.insert(ended.end(), some.begin(), some.end());
        return !ended.empty() && ended.back().failed();
      }));
    }
    ASSERT_EQ(give_back(a, std::move(lane.a), ended).how, Retirement::recycled);
    EXPECT_EQ(ended.size(), accepted);
    for (const auto& completion : ended) EXPECT_EQ(completion.id.epoch, round);
    std::vector<WorkCompletion> ended_of_b;
    ASSERT_EQ(give_back(b, std::move(lane.b), ended_of_b).how, Retirement::recycled);
    EXPECT_EQ(ended_of_b.size(), round % 3 == 0 ? 0U : round % 3 == 1 ? 8U : 4U);
  }
  EXPECT_EQ(a.pool.counts().made, 2U) << "the same ones all the time";
}

TEST_F(KernelDevice, GrowsItsCompletionQueueUnderTraffic) {
  Lane lane{a.pool.lease(), b.pool.lease()};
  connect(a, b, lane, 1);
  const auto capacity = b.completion_queue.capacity();
  ASSERT_EQ(b.post_receives(*lane.b, 1, 0, 8), 0);
  post_sends(*lane.a, 1, 8);
  EXPECT_EQ(completions(a, 8).size(), 8U);  // so they are in b's queue
  std::vector<std::unique_ptr<ReliableQueue>> more;
  while (b.completion_queue.capacity() == capacity) more.push_back(b.pool.lease());
  const auto received = completions(b, 8);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(received[i].id.slot, i);
}

TEST_F(KernelDevice, WakesWhoSleeps) {
  Lane lane{a.pool.lease(), b.pool.lease()};
  connect(a, b, lane, 1);
  ASSERT_EQ(b.post_receives(*lane.b, 1, 0, 2), 0);
  auto& queue = b.completion_queue;
  EXPECT_EQ(queue.drain_events(), 0U) << "and did not block";
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(queue.arm(), 0);
    EXPECT_TRUE(b.poll().empty());
    post_sends(*lane.a, 1, 1);
    pollfd descriptor{.fd = queue.fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&descriptor, 1, static_cast<int>(patience / 1ms)), 1);
    EXPECT_EQ(queue.drain_events(), 1U);
    EXPECT_EQ(completions(b, 1).size(), 1U);
  }
}

}  // namespace
}  // namespace verbatim::qp::testing
