#include "device/async_events.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "unit/device/fake_context.hpp"

namespace verbatim::device {
namespace {

ibv_async_event port_event(ibv_event_type type, int port) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  return event;
}

class AsyncEventsTest : public ::testing::Test {
 protected:
  Drained drain() {
    return drain_async_events(context, [this](const AsyncEvent& event) { seen.push_back(event); });
  }
  FakeContext context{"fake0"};
  std::vector<AsyncEvent> seen;
};

TEST_F(AsyncEventsTest, ReturnsAtOnceWhenThereIsNone) {
  const auto drained = drain();
  EXPECT_EQ(drained.events, 0u);
  EXPECT_EQ(drained.problem, 0);
}

TEST_F(AsyncEventsTest, TakesAWholeBurstInOneCall) {
  for (int i = 0; i < 64; ++i) context.raise(port_event(IBV_EVENT_GID_CHANGE, 1));
  context.raise(port_event(IBV_EVENT_PORT_ERR, 2));
  EXPECT_EQ(drain().events, 65u);
  ASSERT_EQ(seen.size(), 65u);
  EXPECT_EQ(seen.back().type, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(std::get<PortNumber>(seen.back().subject), PortNumber{2});
  EXPECT_EQ(context.acknowledged, 65u);
}

TEST_F(AsyncEventsTest, NamesTheObject) {
  ibv_qp qp{};
  ibv_cq cq{};
  ibv_srq srq{};
  ibv_async_event event{};
  event.event_type = IBV_EVENT_QP_FATAL;
  event.element.qp = &qp;
  context.raise(event);
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = &cq;
  context.raise(event);
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  event.element.srq = &srq;
  context.raise(event);
  context.raise(port_event(IBV_EVENT_DEVICE_FATAL, 1));
  drain();
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(std::get<ibv_qp*>(seen[0].subject), &qp);
  EXPECT_EQ(std::get<ibv_cq*>(seen[1].subject), &cq);
  EXPECT_EQ(std::get<ibv_srq*>(seen[2].subject), &srq);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(seen[3].subject));
}

TEST_F(AsyncEventsTest, GoesOnAfterASignal) {
  context.raise(port_event(IBV_EVENT_PORT_ACTIVE, 1));
  context.fail_next_event(EINTR);
  EXPECT_EQ(drain().events, 1u);
}

TEST_F(AsyncEventsTest, SaysWhenTheDeviceHasGone) {
  context.fail_next_event(EIO);
  EXPECT_EQ(drain().problem, EIO);
}

TEST_F(AsyncEventsTest, LeavesTheRestOfAStorm) {
  for (unsigned int i = 0; i < max_events_per_drain + 1; ++i) context.raise(port_event(IBV_EVENT_GID_CHANGE, 1));
  EXPECT_EQ(drain().events, max_events_per_drain);
  EXPECT_EQ(drain().events, 1u);
}

TEST_F(AsyncEventsTest, AcknowledgesAfterTheHandlerEvenIfItThrows) {
  context.raise(port_event(IBV_EVENT_PORT_ERR, 1));
  const auto handler = [this](const AsyncEvent&) {
    EXPECT_EQ(context.acknowledged, 0u);
    throw std::runtime_error("handler");
  };
  EXPECT_THROW(drain_async_events(context, handler), std::runtime_error);
  EXPECT_EQ(context.acknowledged, 1u);
}

}  // namespace
}  // namespace verbatim::device
