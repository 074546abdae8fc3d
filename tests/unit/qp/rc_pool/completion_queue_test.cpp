#include "qp/completion_queue.hpp"

#include <poll.h>

#include "unit/qp/rc_pool/two_workers.hpp"

namespace verbatim::qp::testing {
namespace {

bool readable(int fd) {
  pollfd descriptor{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&descriptor, 1, 0) == 1;
}

class CompletionQueues : public TwoWorkers {
 protected:
  soft::DeviceConfig device_with(std::uint32_t max_cqe) {
    soft::DeviceConfig config;
    config.limits.max_cqe = max_cqe;
    return config;
  }
};

TEST_F(CompletionQueues, GrowUpToTheDevicesLimitAndThenRefuse) {
  const auto context = soft::open_sim(network, device_with(64));
  const ProtectionDomain domain(*context);
  CompletionQueue queue(*context, domain, 16, 1000);
  EXPECT_EQ(queue.capacity(), 16U);
  EXPECT_EQ(queue.limit(), 64U);
  EXPECT_FALSE(queue.reserve(16));
  EXPECT_EQ(queue.capacity(), 16U) << "as long as it suffices";
  EXPECT_FALSE(queue.reserve(30));
  EXPECT_GE(queue.capacity(), 46U);
  const auto refused = queue.reserve(19);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), ErrorCode::no_space);
  EXPECT_NE(std::string(refused->what()).find("46 of 46"), std::string::npos) << refused->what();
  EXPECT_EQ(queue.reserved(), 46U) << "nothing was set aside";
  EXPECT_FALSE(queue.reserve(18)) << "as many as the device has";
  EXPECT_EQ(queue.capacity(), 64U);
  queue.release(18);
  EXPECT_FALSE(queue.reserve(18));
}

TEST_F(CompletionQueues, GrowNoFurtherThanAsked) {
  const auto context = soft::open_sim(network, device_with(1024));
  const ProtectionDomain domain(*context);
  CompletionQueue queue(*context, domain, 16, 40);
  EXPECT_FALSE(queue.reserve(40));
  EXPECT_TRUE(queue.reserve(1));
}

TEST_F(CompletionQueues, CountWhatAQueuePairLeftBehindUntilSeenEmpty) {
  const auto context = soft::open_sim(network, device_with(64));
  const ProtectionDomain domain(*context);
  CompletionQueue queue(*context, domain, 16, 64);
  ASSERT_FALSE(queue.reserve(64));
  queue.release_when_empty(64);
  EXPECT_TRUE(queue.reserve(1));
  EXPECT_EQ(queue.poll([](const WorkCompletion&) {}), 0U);
  EXPECT_FALSE(queue.reserve(64));
}

TEST_F(CompletionQueues, WakeWhoSleepsAndTakeEveryEvent) {
  open();
  Lane lane = connected();
  ASSERT_EQ(b->post_receives(*lane.b, 1, 0, 2), 0);
  auto& queue = b->completion_queue;
  EXPECT_EQ(queue.drain_events(), 0U) << "and did not block";
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(queue.arm(), 0);
    EXPECT_TRUE(b->poll().empty());
    EXPECT_FALSE(readable(queue.fd()));
    ASSERT_EQ(lane.a->post_send(WorkKind::send, 1, {}, Signal::no, Inline::no), 0);
    network.run_for(1ms);
    EXPECT_TRUE(readable(queue.fd()));
    EXPECT_EQ(queue.drain_events(), 1U);
    EXPECT_FALSE(readable(queue.fd()));
    EXPECT_EQ(b->poll().size(), 1U);
  }
}

TEST_F(CompletionQueues, PollNoMoreThanAskedFor) {
  open();
  Lane lane = connected();
  ASSERT_EQ(b->post_receives(*lane.b, 1, 0, 8), 0);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(lane.a->post_send(WorkKind::send, 1, {}, Signal::no, Inline::no), 0);
  network.run_for(1ms);
  unsigned seen = 0;
  const auto count = [&](const WorkCompletion& completion) {
    EXPECT_EQ(completion.id.slot, seen);
    ++seen;
  };
  EXPECT_EQ(b->completion_queue.poll(count, 3), 3U);
  EXPECT_EQ(b->completion_queue.poll(count, 100), 5U);
  EXPECT_EQ(seen, 8U);
}

}  // namespace
}  // namespace verbatim::qp::testing
