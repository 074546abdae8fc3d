// QueuePair on the device under test: what it refuses by itself, what it learns, and a re-connect out of the path
// cache.
#include "qp/queue_pair.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <utility>

#include "qp/connection.hpp"
#include "vm/qp_states/device.hpp"

namespace verbatim::qp::test {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr auto completion_deadline = 20s;

QueuePair make(ibv_qp_type type) {
  auto& device = device_under_test();
  auto attributes = device.queue_pair(type);
  return QueuePair::create(*device.context, device.pd, attributes);
}

RcConnection connection_to(Qpn peer, Psn sent_by_peer, Psn sent_by_us) {
  const auto& device = device_under_test();
  return {.peer = {.path = device.path,
                   .path_mtu = device.path_mtu,
                   .number = peer,
                   .first_expected = sent_by_peer,
                   .first_sent = sent_by_us},
          .access = IBV_ACCESS_REMOTE_WRITE,
          .initiator_depth = 1,
          .responder_resources = 1,
          .rnr_timer = RnrTimer(640us),
          .ack_timeout = AckTimeout(8ms),
          .retries = RetryCount(1),
          .rnr_retries = RnrRetry(1)};
}

template <typename Connection>
void bring_to_rts(QueuePair& queue_pair, const Connection& connection) {
  for (const auto& step : {to_init(connection), to_rtr(connection), to_rts(connection)}) {
    queue_pair.modify(step);
    EXPECT_EQ(queue_pair.state(), step.attributes.qp_state);
    EXPECT_EQ(queue_pair.query_state(), step.attributes.qp_state);
  }
}

Error failure(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::busy, "no failure"};
}

// An empty message: needs no memory.
void post_send(const QueuePair& queue_pair) {
  ibv_send_wr work{}, *bad = nullptr;
  work.opcode = IBV_WR_SEND;
  work.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(ibv_post_send(queue_pair.handle(), &work, &bad), 0);
}

void post_receive(const QueuePair& queue_pair) {
  ibv_recv_wr work{}, *bad = nullptr;
  ASSERT_EQ(ibv_post_recv(queue_pair.handle(), &work, &bad), 0);
}

ibv_wc next_completion() {
  const auto deadline = std::chrono::steady_clock::now() + completion_deadline;
  ibv_wc completion{};
  while (ibv_poll_cq(device_under_test().cq, 1, &completion) == 0) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("no completion came");
  }
  return completion;
}

TEST(QueuePair, GoesFromResetToRtsWhateverItsType) {
  auto rc = make(IBV_QPT_RC);
  EXPECT_EQ(rc.state(), IBV_QPS_RESET);
  bring_to_rts(rc, connection_to(rc.number(), Psn(1), Psn(1)));

  auto uc = make(IBV_QPT_UC);
  bring_to_rts(uc, UcConnection{.peer = connection_to(uc.number(), Psn(1), Psn(1)).peer});

  auto ud = make(IBV_QPT_UD);
  bring_to_rts(ud, UdSettings{.port = PortNumber{1}, .pkey_index = 0, .qkey = 0x1234, .first_sent = Psn(1)});
}

TEST(QueuePair, RefusesAWrongModifyBeforeTheDeviceSeesIt) {
  auto queue_pair = make(IBV_QPT_RC);
  auto init = to_init(connection_to(queue_pair.number(), Psn(1), Psn(1)));
  init.mask |= IBV_QP_TIMEOUT;
  init.mask &= ~IBV_QP_ACCESS_FLAGS;
  init.attributes.port_num = 99;
  const auto error = failure([&] { queue_pair.modify(init); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("RC RESET→INIT: missing ACCESS_FLAGS; TIMEOUT can be set at RTR→RTS or SQD→SQD, "
                                      "not at RESET→INIT; PORT is 99, allowed are 1 to 1"));
  EXPECT_EQ(queue_pair.query_state(), IBV_QPS_RESET);
  EXPECT_EQ(queue_pair.path().attributes().mask, 0) << "remembered although it was not done";
}

// Linux would do this one: that it is not done shows that we were first.
TEST(QueuePair, KeepsTheDeviceOutOfIt) {
  auto queue_pair = make(IBV_QPT_RC);
  queue_pair.modify(to_init(connection_to(queue_pair.number(), Psn(1), Psn(1))));
  auto again = to_state(IBV_QPS_INIT);
  const auto error = queue_pair.try_modify(again);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::invalid_argument);
  EXPECT_EQ(device_under_test().context->modify_qp(queue_pair.handle(), again.attributes, again.mask), 0);
}

TEST(QueuePair, RefusesAClaimAboutTheStateThatCanNotBe) {
  auto queue_pair = make(IBV_QPT_RC);
  bring_to_rts(queue_pair, connection_to(queue_pair.number(), Psn(1), Psn(1)));
  auto change = to_state(IBV_QPS_RTS);
  change.attributes.cur_qp_state = IBV_QPS_SQD;
  change.mask |= IBV_QP_CUR_STATE;
  EXPECT_THAT(failure([&] { queue_pair.modify(change); }).what(),
              EndsWith("CUR_STATE says SQD, but it is in RTS: leave CUR_STATE out, or query the state first"));
}

TEST(QueuePair, PassesOnARefusalOfTheDevice) {
  auto queue_pair = make(IBV_QPT_RC);
  const auto error = failure([&] { queue_pair.modify(to_state(IBV_QPS_ERR)); });
  EXPECT_EQ(error.code(), ErrorCode::device_failure);
  EXPECT_THAT(error.what(), EndsWith("the device refused RC RESET→ERR: Invalid argument (errno 22)"));
  EXPECT_EQ(queue_pair.state(), IBV_QPS_RESET);
}

TEST(QueuePair, LearnsTheValuesBehindItsIndices) {
  auto& device = device_under_test();
  auto queue_pair = make(IBV_QPT_RC);
  EXPECT_FALSE(queue_pair.path().source_gid().has_value());
  bring_to_rts(queue_pair, connection_to(queue_pair.number(), Psn(1), Psn(1)));

  std::uint16_t pkey = 0;
  ASSERT_EQ(device.context->query_pkey(1, 0, pkey), 0);
  EXPECT_EQ(queue_pair.path().pkey(), pkey);
  const auto& source = queue_pair.path().source_gid();
  ASSERT_TRUE(source.has_value());
  EXPECT_THAT(source->gid.bytes, ::testing::ElementsAreArray(device.path.route->destination.raw));
  EXPECT_EQ(source->type, device::GidType::roce_v2);
}

void expect_a_message(const QueuePair& from, const QueuePair& to) {
  post_receive(to);
  post_send(from);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
}

void reconnect(QueuePair& queue_pair, Psn first_expected, Psn first_sent) {
  queue_pair.modify(to_state(IBV_QPS_ERR));
  queue_pair.modify(to_state(IBV_QPS_RESET));
  queue_pair.modify(queue_pair.reconnect_to_init());
  queue_pair.modify(queue_pair.reconnect_to_rtr(first_expected));
  queue_pair.modify(queue_pair.reconnect_to_rts(first_sent));
}

TEST(QueuePair, CarriesMessagesBeforeAndAfterAReconnectWithFreshPsns) {
  auto left = make(IBV_QPT_RC), right = make(IBV_QPT_RC);
  bring_to_rts(left, connection_to(right.number(), Psn(0x100), Psn(0x200)));
  bring_to_rts(right, connection_to(left.number(), Psn(0x200), Psn(0x100)));
  expect_a_message(left, right);
  expect_a_message(right, left);

  reconnect(left, Psn(0x300), Psn(0xffffff));
  reconnect(right, Psn(0xffffff), Psn(0x300));
  EXPECT_EQ(left.query_state(), IBV_QPS_RTS);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(device_under_test().context->query_qp(left.handle(), attributes, IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, init), 0);
  EXPECT_EQ(attributes.sq_psn, 0xffffffU);
  EXPECT_EQ(attributes.rq_psn, 0x300U);
  expect_a_message(left, right);
  expect_a_message(right, left);
}

TEST(QueuePair, NoticesAtTheNextModifyThatTheDeviceMovedItToError) {
  auto queue_pair = make(IBV_QPT_RC);
  Qpn nobody{0};
  {
    const auto gone = make(IBV_QPT_RC);
    nobody = gone.number();
  }
  bring_to_rts(queue_pair, connection_to(nobody, Psn(1), Psn(1)));
  post_send(queue_pair);
  EXPECT_EQ(next_completion().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(queue_pair.state(), IBV_QPS_RTS) << "nobody asked the device yet";

  Modification change;
  change.attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  change.mask = IBV_QP_ACCESS_FLAGS;
  EXPECT_THAT(failure([&] { queue_pair.modify(change); }).what(),
              EndsWith("the device refused RC RTS→RTS: Invalid argument (errno 22); it had moved to ERR by itself"));
  EXPECT_EQ(queue_pair.state(), IBV_QPS_ERR);
}

TEST(QueuePair, OwnsTheQueuePairOfTheDevice) {
  auto& device = device_under_test();
  auto* pd = device.context->alloc_pd();
  ASSERT_NE(pd, nullptr);
  auto attributes = device.queue_pair(IBV_QPT_RC);
  {
    auto first = QueuePair::create(*device.context, pd, attributes);
    const auto number = first.number();
    auto second = std::move(first);
    EXPECT_EQ(second.number(), number);
    second = QueuePair::create(*device.context, pd, attributes);
    EXPECT_EQ(second.query_state(), IBV_QPS_RESET);
    EXPECT_EQ(device.context->dealloc_pd(pd), EBUSY) << "still in use";
  }
  EXPECT_EQ(device.context->dealloc_pd(pd), 0) << "something is left in it";
}

TEST(QueuePair, SaysWhatWasAskedForIfTheDeviceMakesNone) {
  auto& device = device_under_test();
  auto attributes = device.queue_pair(IBV_QPT_RC);
  attributes.cap.max_send_sge = 100000;
  const auto error = failure([&] { (void)QueuePair::create(*device.context, device.pd, attributes); });
  EXPECT_EQ(error.code(), ErrorCode::device_failure);
  EXPECT_THAT(error.what(), HasSubstr("with 4 sends of 100000 SGEs"));
}

}  // namespace
}  // namespace verbatim::qp::test
