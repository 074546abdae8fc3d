// Completion channels and async events: descriptors that are readable exactly while there is an event.
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <future>

#include "base/random.hpp"
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

using std::chrono::microseconds;

// What an event loop sees of one descriptor.
class Epoll {
 public:
  explicit Epoll(int fd) : fd_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;
    EXPECT_EQ(epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event), 0);
  }
  ~Epoll() { close(fd_); }
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;
  [[nodiscard]] bool readable() const {
    epoll_event event{};
    return epoll_wait(fd_, &event, 1, 0) == 1;
  }

 private:
  int fd_;
};

class Events : public RcPair {
 protected:
  void send_one(unsigned flags = IBV_SEND_SIGNALED) {
    ASSERT_EQ(post_receive(b, 1, 0, 64), 0);
    ASSERT_EQ(post_send(a, 2, 0, 16, flags), 0);
    settle();
  }
  // Takes one event of b's channel, which must be there, and acknowledges it.
  void take_event() {
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    ASSERT_EQ(b.context->get_cq_event(b.channel, &cq, &cq_context), 0);
    EXPECT_EQ(cq, b.cq);
    b.context->ack_cq_events(cq, 1);
  }
};

TEST_F(Events, ChannelIsReadableWhileThereIsAnEvent) {
  const Epoll epoll(b.channel->fd);
  send_one();
  EXPECT_FALSE(epoll.readable()) << "not armed";
  EXPECT_EQ(polled(b).size(), 1U);

  ASSERT_EQ(ibv_req_notify_cq(b.cq, 0), 0);
  EXPECT_FALSE(epoll.readable());
  send_one();
  EXPECT_TRUE(epoll.readable());
  send_one();
  take_event();
  EXPECT_FALSE(epoll.readable()) << "one event for one arming";
  EXPECT_EQ(polled(b).size(), 2U);
}

TEST_F(Events, ArmingWithCompletionsInTheQueueWaitsForTheNext) {
  // As on hardware: what is there already has to be polled after arming.
  const Epoll epoll(b.channel->fd);
  send_one();
  ASSERT_EQ(ibv_req_notify_cq(b.cq, 0), 0);
  EXPECT_FALSE(epoll.readable());
  EXPECT_EQ(polled(b).size(), 1U);
  send_one();
  EXPECT_TRUE(epoll.readable());
  take_event();
}

TEST_F(Events, NonblockingChannelSaysThatThereIsNothing) {
  ASSERT_EQ(fcntl(b.channel->fd, F_SETFL, O_NONBLOCK), 0);
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  EXPECT_EQ(b.context->get_cq_event(b.channel, &cq, &cq_context), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Events, SolicitedOnly) {
  const Epoll epoll(b.channel->fd);
  ASSERT_EQ(ibv_req_notify_cq(b.cq, 1), 0);
  send_one();
  EXPECT_FALSE(epoll.readable());
  send_one(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
  EXPECT_TRUE(epoll.readable());
  take_event();

  ASSERT_EQ(ibv_req_notify_cq(b.cq, 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(b.cq, 1), 0);
  send_one();
  EXPECT_TRUE(epoll.readable()) << "armed for all is not weakened";
  take_event();

  ASSERT_EQ(ibv_req_notify_cq(b.cq, 1), 0);
  ASSERT_EQ(post_receive(b, 1, 0, 64), 0);
  ASSERT_EQ(modify_to(b, IBV_QPS_ERR), 0);
  EXPECT_TRUE(epoll.readable()) << "failures are always told";
  take_event();
}

// Arm, poll until empty, sleep: with work pending nobody sleeps, wherever an arrival falls between the steps.
TEST_F(Events, NoWakeUpIsLost) {
  const Epoll epoll(b.channel->fd);
  Random random(3);
  constexpr std::uint64_t messages = 6400;
  constexpr std::uint64_t window = 32;
  std::uint64_t posted = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (; posted < window; ++posted) ASSERT_EQ(post_receive(b, posted, 0, 64), 0);
  const auto traffic = [&] {
    for (std::uint64_t more = random.below(4); more > 0 && sent < messages && sent < received + window; --more) {
      ASSERT_EQ(post_send(a, sent++, 0, 16), 0);
    }
    for (std::uint64_t steps = random.below(6); steps > 0; --steps) network.step();
    (void)polled(a);
  };
  const auto poll_until_empty = [&] {
    for (std::vector<ibv_wc> wcs = polled(b); !wcs.empty(); wcs = polled(b)) {
      for (const ibv_wc& wc : wcs) {
        ASSERT_EQ(wc.wr_id, received++);
        ASSERT_EQ(post_receive(b, posted++, 0, 64), 0);
      }
    }
  };
  std::uint64_t wake_ups = 0;
  while (received < messages) {
    traffic();
    ASSERT_EQ(ibv_req_notify_cq(b.cq, 0), 0);
    traffic();
    poll_until_empty();
    traffic();
    // Asleep: time passes for everybody, and b does nothing unless its channel says so.
    while (!epoll.readable() && network.step()) {
    }
    if (!epoll.readable()) {
      ASSERT_EQ(received, sent) << "asleep with work pending";
      continue;
    }
    take_event();
    ++wake_ups;
    traffic();
    poll_until_empty();
  }
  EXPECT_GT(wake_ups, messages / 50);
}

TEST_F(Events, DestroyingACqWaitsForTheAcknowledgementOfItsOwnEvents) {
  ibv_cq* const two[] = {b.context->create_cq(16, nullptr, b.channel, 0),
                         b.context->create_cq(16, nullptr, b.channel, 0)};
  ibv_qp* const own = b.qp;
  ibv_qp* qps[2];
  for (int i = 0; i < 2; ++i) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = two[i];
    init.qp_type = IBV_QPT_RC;
    init.cap = cap;
    b.qp = qps[i] = b.context->create_qp(b.pd, init);
    ASSERT_NE(b.qp, nullptr);
    to_init(b);
    ASSERT_EQ(post_receive(b, 1, 0, 8), 0);
    ASSERT_EQ(ibv_req_notify_cq(two[i], 0), 0);
    ASSERT_EQ(modify_to(b, IBV_QPS_ERR), 0);
  }
  b.qp = own;
  for (int i = 0; i < 2; ++i) {
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    ASSERT_EQ(b.context->get_cq_event(b.channel, &cq, &cq_context), 0);
    EXPECT_EQ(cq, two[i]) << "in the order in which they came";
  }
  for (ibv_qp* qp : qps) EXPECT_EQ(b.context->destroy_qp(qp), 0);
  b.context->ack_cq_events(two[0], 1);
  EXPECT_EQ(b.context->destroy_cq(two[0]), 0) << "the other's event does not hold it back";
  auto destroyed = std::async(std::launch::async, [&] { return b.context->destroy_cq(two[1]); });
  EXPECT_EQ(destroyed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout) << "not acknowledged yet";
  b.context->ack_cq_events(two[1], 1);
  EXPECT_EQ(destroyed.get(), 0);
}

TEST_F(Events, EventsThatNobodyTookGoWithTheirCq) {
  const Epoll epoll(b.channel->fd);
  for (int round = 0; round < 1000; ++round) {
    ibv_cq* cq = b.context->create_cq(16, nullptr, b.channel, 0);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = cap;
    Side once;
    once.qp = b.context->create_qp(b.pd, init);
    once.mr = b.mr;
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    std::swap(once.qp, b.qp);
    to_init(b);
    ASSERT_EQ(post_receive(b, 1, 0, 8), 0);
    b.control().kill(b.qp);
    std::swap(once.qp, b.qp);
    ASSERT_TRUE(epoll.readable());
    ASSERT_EQ(b.context->destroy_qp(once.qp), 0);
    ASSERT_EQ(b.context->destroy_cq(cq), 0);
    ASSERT_FALSE(epoll.readable());
  }
  EXPECT_TRUE(b.async_events().empty()) << "their QP_FATAL went with them too";
}

TEST_F(Events, AChannelInUseIsNotDestroyed) {
  EXPECT_EQ(b.context->destroy_comp_channel(b.channel), EBUSY);
}

// -- async events ----------------------------------------------------------------------------------------------------

TEST_F(Events, AsyncDescriptorIsReadableWhileThereIsAnEvent) {
  const Epoll epoll(b.context->handle()->async_fd);
  EXPECT_FALSE(epoll.readable());
  // Harmless ones before the one that counts: all have to be taken.
  for (int i = 0; i < 64; ++i) b.control().set_pkey(1, 1, 0x8001);
  b.control().set_port_active(1, false);
  for (int i = 0; i < 65; ++i) {
    ASSERT_TRUE(epoll.readable());
    ibv_async_event event{};
    ASSERT_EQ(b.context->get_async_event(event), 0);
    EXPECT_EQ(event.event_type, i < 64 ? IBV_EVENT_PKEY_CHANGE : IBV_EVENT_PORT_ERR);
    EXPECT_EQ(event.element.port_num, 1);
    b.context->ack_async_event(event);
  }
  EXPECT_FALSE(epoll.readable());
  ASSERT_EQ(fcntl(b.context->handle()->async_fd, F_SETFL, O_NONBLOCK), 0);
  ibv_async_event event{};
  EXPECT_EQ(b.context->get_async_event(event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Events, ConnectionIsEstablishedByTheFirstPacketInRtr) {
  for (Side* side : {&a, &b}) {
    ASSERT_EQ(modify_to(*side, IBV_QPS_RESET), 0);
    to_init(*side);
  }
  to_rtr(a, b, settings.psn_b);
  to_rtr(b, a, settings.psn_a);
  to_rts(a, settings.psn_a);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 8, b, 0), 0);
    EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  }
  const auto events = b.async_events();
  ASSERT_EQ(events.size(), 1U) << "once";
  EXPECT_EQ(events[0].event_type, IBV_EVENT_COMM_EST);
  EXPECT_EQ(events[0].element.qp, b.qp);
}

TEST_F(Events, RefusedRequestsAreToldToTheResponder) {
  ASSERT_EQ(post(a, 1, IBV_WR_RDMA_WRITE, 0, 8,
                 [&](ibv_send_wr& wr) {
                   wr.wr.rdma = {b.address(), b.mr->rkey + 1};
                 }),
            0);
  EXPECT_EQ(completion(a).status, IBV_WC_REM_ACCESS_ERR);
  const auto events = b.async_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(b.state(), IBV_QPS_ERR);
}

// -- shared receives -------------------------------------------------------------------------------------------------

class SharedReceives : public Events {
 protected:
  SharedReceives() { shared_receives_of_b = 16; }
  void set_limit(std::uint32_t limit) {
    ibv_srq_attr attributes{};
    attributes.srq_limit = limit;
    ASSERT_EQ(b.context->modify_srq(b.srq, attributes, IBV_SRQ_LIMIT), 0);
  }
};

TEST_F(SharedReceives, LimitIsToldOnceWhenItIsUndercut) {
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(post_receive(b, i, 0, 64), 0);
  set_limit(4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(post_send(a, i, 0, 8), 0);
  settle();
  EXPECT_TRUE(b.async_events().empty()) << "four are left";
  ASSERT_EQ(post_send(a, 4, 0, 8), 0);
  settle();
  const auto events = b.async_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(events[0].element.srq, b.srq);
  ASSERT_EQ(post_send(a, 5, 0, 8), 0);
  settle();
  EXPECT_TRUE(b.async_events().empty()) << "disarmed";
  ibv_srq_attr attributes{};
  ASSERT_EQ(b.context->query_srq(b.srq, attributes), 0);
  EXPECT_EQ(attributes.srq_limit, 0U);
  set_limit(3);
  ASSERT_EQ(post_send(a, 6, 0, 8), 0);
  settle();
  EXPECT_EQ(b.async_events().size(), 1U) << "armed again";
}

TEST_F(SharedReceives, LastRequestReachedIsToldInError) {
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(post_receive(b, i, 0, 64), 0);
  ASSERT_EQ(modify_to(b, IBV_QPS_ERR), 0);
  const auto events = b.async_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(events[0].element.qp, b.qp);
  EXPECT_TRUE(polled(b).empty()) << "the shared receives are not this queue pair's to flush";
  // They serve it again after a new start.
  reconnect(settings);
  ASSERT_EQ(post_send(a, 1, 0, 8), 0);
  EXPECT_EQ(completion(b).wr_id, 0U);
}

// A receive taken for a message that never became whole is flushed with the queue pair, and none is lost to RESET.
TEST_F(SharedReceives, HalfFilledReceiveIsFlushed) {
  ConnectionSettings patient = settings;
  patient.timeout = 0;
  reconnect(patient);
  for (std::uint64_t i = 0; i < 16; ++i) ASSERT_EQ(post_receive(b, i, 0, 4096), 0);
  a.fault({.fault = PacketFault::drop, .nth = 2});
  ASSERT_EQ(post_send(a, 1, 0, 2000), 0);
  settle();
  ASSERT_EQ(modify_to(b, IBV_QPS_ERR), 0);
  const auto wcs = polled(b);
  ASSERT_EQ(wcs.size(), 1U);
  EXPECT_EQ(wcs[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wcs[0].wr_id, 0U);
  ASSERT_EQ(post_receive(b, 16, 0, 64), 0) << "its place is free again";
  EXPECT_EQ(post_receive(b, 17, 0, 64), ENOMEM);

  // And by RESET alone.
  a.heal();
  reconnect(patient);
  a.fault({.fault = PacketFault::drop, .nth = 2});
  ASSERT_EQ(post_send(a, 1, 0, 2000), 0);
  settle();
  ASSERT_EQ(modify_to(b, IBV_QPS_RESET), 0);
  EXPECT_TRUE(polled(b).empty());
  EXPECT_EQ(post_receive(b, 18, 0, 64), 0) << "its place is free again";
}

}  // namespace
}  // namespace verbatim::soft::testing
