// Faults other than packets': a queue pair that dies, one that does not answer, does not reset, does not drain, and a
// length of zero that means 2 GiB.
#include <cerrno>

#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

using std::chrono::microseconds;

class Faults : public RcPair {
 protected:
  static FaultPlan plan(bool FaultPlan::*fault) {
    FaultPlan made;
    made.*fault = true;
    return made;
  }
  ibv_wc_status write_status() {
    EXPECT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 100, b, 0), 0);
    return completion(a).status;
  }
  static void expect_flushed(const std::vector<ibv_wc>& wcs, std::uint64_t first, std::size_t count) {
    ASSERT_EQ(wcs.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(wcs[i].status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(wcs[i].wr_id, first + i) << "in order";
    }
  }
};

TEST_F(Faults, KilledQueuePairFlushesAndTells) {
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(post_rdma(a, i, IBV_WR_RDMA_WRITE, 0, 100, b, 0), 0);
  a.control().kill(a.qp);
  expect_flushed(polled(a), 0, 4);
  EXPECT_EQ(a.state(), IBV_QPS_ERR);
  const auto events = a.async_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(events[0].element.qp, a.qp);
  EXPECT_EQ(b.state(), IBV_QPS_RTS) << "the peer learns nothing";
  EXPECT_EQ(post_rdma(b, 9, IBV_WR_RDMA_WRITE, 0, 100, a, 0), 0);
  EXPECT_EQ(completion(b).status, IBV_WC_RETRY_EXC_ERR) << "until it sends";
  a.control().kill(a.qp);
  EXPECT_TRUE(a.async_events().empty()) << "it dies once";
  reconnect(settings);
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS);
}

TEST_F(Faults, QueuePairDiesAfterSoManyPackets) {
  ConnectionSettings patient = settings;
  patient.timeout = 0;
  reconnect(patient);
  FaultPlan dies;
  dies.kill_qpn = a.qp->qp_num;
  dies.kill_after_packets = 4;
  a.control().set_faults(dies);
  const std::uint64_t received = b.counter("packets_received");
  fill(a, 0, 10 * 1024, 1);
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 10 * 1024, b, 0), 0);
  settle();
  const auto flushed = completions(a, 1);
  ASSERT_EQ(flushed.size(), 1U);
  EXPECT_EQ(flushed[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(a.state(), IBV_QPS_ERR);
  const auto events = a.async_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].event_type, IBV_EVENT_QP_FATAL);
  EXPECT_LE(b.counter("packets_received") - received, 4U) << "the fifth and later ones never left";
  EXPECT_NE(b.memory[9 * 1024], a.memory[9 * 1024]);
}

TEST_F(Faults, AnotherQueuePairOfTheDeviceLives) {
  FaultPlan dies;
  dies.kill_qpn = a.qp->qp_num + 1;
  dies.kill_after_packets = 1;
  a.control().set_faults(dies);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(write_status(), IBV_WC_SUCCESS);
}

TEST_F(Faults, StalledResponderNeitherExecutesNorAnswers) {
  b.control().set_faults(plan(&FaultPlan::stall_responder));
  fill(a, 0, 100, 5);
  EXPECT_EQ(write_status(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_FALSE(same(a, 0, b, 0, 100));
  EXPECT_EQ(b.counter("dropped"), settings.retry_cnt + 1U);
  reconnect(settings);

  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 100, b, 0), 0);
  network.run_for(microseconds(100));
  b.heal();
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS) << "healed in time";
}

TEST_F(Faults, StalledResponderStillSends) {
  b.control().set_faults(plan(&FaultPlan::stall_responder));
  ASSERT_EQ(post_rdma(b, 1, IBV_WR_RDMA_WRITE, 0, 100, a, 0), 0);
  EXPECT_EQ(completion(b).status, IBV_WC_SUCCESS);
}

TEST_F(Faults, RefusedResetIsAnInputOutputError) {
  a.control().set_faults(plan(&FaultPlan::refuse_reset));
  EXPECT_EQ(modify_to(a, IBV_QPS_RESET), EIO);
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
  ASSERT_EQ(modify_to(a, IBV_QPS_ERR), 0);
  EXPECT_EQ(modify_to(a, IBV_QPS_RESET), EIO);
  EXPECT_EQ(a.state(), IBV_QPS_ERR);
  a.heal();
  EXPECT_EQ(modify_to(a, IBV_QPS_RESET), 0);
}

TEST_F(Faults, RefusedResetDoesNotKeepAQueuePairFromBeingDestroyed) {
  a.control().set_faults(plan(&FaultPlan::refuse_reset));
  EXPECT_EQ(a.context->destroy_qp(a.qp), 0);
  a.qp = nullptr;
}

TEST_F(Faults, EndlessDrainFlushesNothingUntilHealed) {
  a.fault({.fault = PacketFault::drop, .rate = 1});
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(post_rdma(a, i, IBV_WR_RDMA_WRITE, 0, 100, b, 0), 0);
  for (std::uint64_t i = 3; i < 5; ++i) ASSERT_EQ(post_receive(a, i, 0, 100), 0);
  a.control().set_faults(plan(&FaultPlan::endless_drain));
  ASSERT_EQ(modify_to(a, IBV_QPS_ERR), 0);
  settle();
  EXPECT_TRUE(polled(a).empty());
  ASSERT_EQ(post_receive(a, 5, 0, 100), 0);
  EXPECT_TRUE(polled(a).empty()) << "a marker does not come through either";
  a.heal();
  expect_flushed(polled(a), 0, 6);
}

TEST_F(Faults, EndlessDrainEndsWithReset) {
  ASSERT_EQ(post_receive(a, 1, 0, 100), 0);
  a.control().set_faults(plan(&FaultPlan::endless_drain));
  reconnect(settings);
  EXPECT_TRUE(polled(a).empty());
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS);
}

TEST_F(Faults, PacketsHeldBackAreLostWhenHealed) {
  a.fault({.fault = PacketFault::delay, .rate = 1, .delay = std::chrono::milliseconds(1)});
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 100, b, 0), 0);
  a.heal();
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(a.counter("timeouts"), 1U);
}

TEST_F(Faults, RulesOfPacketsAreByQueuePairAndBounded) {
  a.fault({.fault = PacketFault::drop, .qpn = a.qp->qp_num + 1, .rate = 1});
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(a.counter("timeouts"), 0U) << "another's packets";
  a.fault({.fault = PacketFault::drop, .qpn = a.qp->qp_num, .rate = 1, .limit = 2});
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(a.counter("timeouts"), 2U) << "two strikes and no more";
}

// -- a length of zero ------------------------------------------------------------------------------------------------

class ZeroLength : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    for (Side* side : {&a, &b}) side->control().set_faults(plan(&FaultPlan::zero_length_is_2gib));
  }
};

TEST_F(ZeroLength, OfASendIsTwoGibibytes) {
  ASSERT_EQ(post_receive(b, 1, 0, 100), 0);
  ASSERT_EQ(post_send(a, 2, 0, 0), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_LOC_LEN_ERR) << "beyond the device's message size";
}

TEST_F(ZeroLength, OfAReceiveReachesBeyondItsRegion) {
  ASSERT_EQ(post_receive(b, 1, memory_bytes - 64, 0), 0);
  ASSERT_EQ(post_send(a, 2, 0, 100), 0);
  EXPECT_EQ(completion(b).status, IBV_WC_LOC_PROT_ERR) << "100 bytes do not fit in front of the region's end";
}

TEST_F(ZeroLength, IsAvoidedByNoPiecesAtAll) {
  ASSERT_EQ(post_receive(b, 1, 0, 100), 0);
  ASSERT_EQ(post(a, 2, IBV_WR_SEND, 0, 0, [](ibv_send_wr& wr) { wr.num_sge = 0; }), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(completion(b).byte_len, 0U);
}

TEST_F(ZeroLength, IsZeroAgainWhenHealed) {
  a.heal();
  ASSERT_EQ(post_receive(b, 1, 0, 100), 0);
  ASSERT_EQ(post_send(a, 2, 0, 0), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace verbatim::soft::testing
