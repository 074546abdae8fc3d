// Limits of a device as it is configured: each holds to the number, and says what hardware would say.
#include <gmock/gmock.h>

#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

class Limited : public ::testing::Test, protected Pair {
 protected:
  void open_with(const Limits& limits) {
    config_a.limits = limits;
    open();
    connect();
  }
  ibv_qp* create(const ibv_qp_cap& wanted) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = a.cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = wanted;
    errno = 0;
    return a.context->create_qp(a.pd, init);
  }
  void expect_accepted(const ibv_qp_cap& wanted) {
    ibv_qp* qp = create(wanted);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(a.context->destroy_qp(qp), 0);
  }
  void expect_refused(const ibv_qp_cap& wanted) {
    EXPECT_EQ(create(wanted), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  static constexpr ibv_qp_cap small{
      .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
};

TEST_F(Limited, QueuePairs) {
  open_with({.max_qp = 3});  // one of them is the pair's
  ibv_qp* second = create(small);
  ibv_qp* third = create(small);
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(create(small), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(a.context->destroy_qp(third), 0);
  third = create(small);
  EXPECT_NE(third, nullptr) << "a destroyed one makes room";
  for (ibv_qp* qp : {second, third}) EXPECT_EQ(a.context->destroy_qp(qp), 0);
}

TEST_F(Limited, RequestsPiecesAndInlineDataOfAQueuePair) {
  open_with({.max_qp_wr = 100, .max_sge = 4, .max_inline_data = 96});
  const ibv_qp_cap most{
      .max_send_wr = 100, .max_recv_wr = 100, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 96};
  expect_accepted(most);
  for (std::uint32_t ibv_qp_cap::*field :
       {&ibv_qp_cap::max_send_wr, &ibv_qp_cap::max_recv_wr, &ibv_qp_cap::max_send_sge, &ibv_qp_cap::max_recv_sge,
        &ibv_qp_cap::max_inline_data}) {
    ibv_qp_cap beyond = most;
    ++(beyond.*field);
    expect_refused(beyond);
  }
}

TEST_F(Limited, CompletionQueues) {
  open_with({.max_cq = 2, .max_cqe = 1024});
  EXPECT_EQ(a.context->create_cq(1025, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(a.context->create_cq(0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_cq* cq = a.context->create_cq(10, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(cq->cqe, 10);
  EXPECT_EQ(a.context->resize_cq(cq, 1025), EINVAL);
  EXPECT_EQ(a.context->resize_cq(cq, 1024), 0);
  EXPECT_EQ(a.context->create_cq(10, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(a.context->destroy_cq(cq), 0);
}

TEST_F(Limited, ProtectionDomainsAndRegions) {
  open_with({.max_mr = 2, .max_pd = 2});
  ibv_pd* pd = a.context->alloc_pd();
  ASSERT_NE(pd, nullptr);
  EXPECT_EQ(a.context->alloc_pd(), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  ibv_mr* mr = a.context->reg_mr(pd, a.memory.data(), 64, 0);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(a.context->reg_mr(pd, a.memory.data(), 64, 0), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(a.context->dereg_mr(mr), 0);
  mr = a.context->reg_mr(pd, a.memory.data(), 64, 0);
  EXPECT_NE(mr, nullptr) << "a deregistered one makes room";
  EXPECT_EQ(a.context->dereg_mr(mr), 0);
  EXPECT_EQ(a.context->dealloc_pd(pd), 0);
}

// One registration fails, as at RLIMIT_MEMLOCK; what is registered goes on working.
TEST_F(Limited, PinnedBytes) {
  open_with({.max_pinned_bytes = memory_bytes + 4096});
  ibv_mr* fits = a.context->reg_mr(a.pd, a.memory.data(), 4096, 0);
  ASSERT_NE(fits, nullptr);
  EXPECT_EQ(a.context->reg_mr(a.pd, a.memory.data(), 1, 0), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 100, b, 0), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(a.context->dereg_mr(fits), 0);
  fits = a.context->reg_mr(a.pd, a.memory.data(), 4096, 0);
  EXPECT_NE(fits, nullptr);
  EXPECT_EQ(a.context->dereg_mr(fits), 0);
}

TEST_F(Limited, ReadsAndAtomicsOnTheWay) {
  config_a.limits.max_rd_atomic = 4;
  config_a.limits.max_dest_rd_atomic = 4;
  open();
  to_init(a);
  settings.rd_atomic = 5;
  EXPECT_EQ(try_rtr(a, b.gid(), b.qp->qp_num, 0), EINVAL) << "max_dest_rd_atomic";
  settings.rd_atomic = 4;
  EXPECT_EQ(try_rtr(a, b.gid(), b.qp->qp_num, 0), 0);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;
  attributes.max_rd_atomic = 5;
  constexpr int mask =
      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  EXPECT_EQ(a.context->modify_qp(a.qp, attributes, mask), EINVAL) << "max_rd_atomic";
  attributes.max_rd_atomic = 4;
  EXPECT_EQ(a.context->modify_qp(a.qp, attributes, mask), 0);
}

// The requester sends no more READs than agreed; they take turns.
TEST_F(Limited, NoMoreReadsAtOnceThanAgreed) {
  settings.rd_atomic = 2;
  open_with({});
  for (std::uint64_t i = 0; i < 6; ++i) {
    b.set_word(8 * i, i + 1);
    ASSERT_EQ(post_rdma(a, i, IBV_WR_RDMA_READ, 4096 + 8 * i, 8, b, 8 * i), 0);
  }
  EXPECT_EQ(a.counter("packets_sent"), 2U);
  const auto done = completions(a, 6);
  ASSERT_EQ(done.size(), 6U);
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(a.word(4096 + 8 * i), i + 1);
  EXPECT_EQ(a.counter("timeouts"), 0U);
}

// -- message size ----------------------------------------------------------------------------------------------------

class MessageSize : public Limited {
 protected:
  static constexpr std::uint32_t limit = 64 * 1024;
  void SetUp() override {
    config_b.limits.max_msg_bytes = limit;
    open_with({.max_msg_bytes = limit});
    for (Side* side : {&a, &b}) {
      ibv_port_attr port{};
      ASSERT_EQ(side->context->query_port(1, port), 0);
      ASSERT_EQ(port.max_msg_sz, limit) << "what applications split by";
    }
  }
  // In `pieces` pieces.
  ibv_wc_status move(ibv_wr_opcode opcode, std::uint32_t bytes, std::uint32_t pieces) {
    constexpr std::size_t there = 262144;
    fill(a, 0, bytes, bytes);
    fill(b, there, bytes, bytes + 1);
    if (opcode == IBV_WR_SEND) {
      EXPECT_EQ(post_receive(b, 1, there, 2 * limit), 0);
    }
    std::vector<ibv_sge> list;
    for (std::uint32_t i = 0, at = 0; i < pieces; ++i) {
      const std::uint32_t length = i + 1 == pieces ? bytes - at : bytes / pieces + i;
      list.push_back({a.address(at), length, a.mr->lkey});
      at += length;
    }
    EXPECT_EQ(post(a, 1, opcode, 0, bytes,
                   [&](ibv_send_wr& wr) {
                     wr.sg_list = list.data();
                     wr.num_sge = static_cast<int>(list.size());
                     wr.wr.rdma = {b.address(there), b.mr->rkey};
                   }),
              0);
    const ibv_wc_status status = completion(a).status;
    if (status == IBV_WC_SUCCESS) {
      EXPECT_TRUE(same(a, 0, b, there, bytes)) << bytes << " bytes";
      if (opcode == IBV_WR_SEND) {
        EXPECT_EQ(completion(b).byte_len, bytes);
      }
    }
    return status;
  }
};

TEST_F(MessageSize, UpToTheLimitAndNotBeyond) {
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    for (const std::uint32_t pieces : {1U, 3U}) {
      SCOPED_TRACE(::testing::Message() << "opcode " << opcode << " in " << pieces << " pieces");
      EXPECT_EQ(move(opcode, limit - 1, pieces), IBV_WC_SUCCESS);
      EXPECT_EQ(move(opcode, limit, pieces), IBV_WC_SUCCESS);
      EXPECT_EQ(move(opcode, limit + 1, pieces), IBV_WC_LOC_LEN_ERR);
      EXPECT_EQ(a.state(), IBV_QPS_ERR);
      reconnect(settings);
    }
  }
}

// -- room in queues --------------------------------------------------------------------------------------------------

TEST_F(Limited, AFullSendQueueRefusesWithEnomem) {
  cap.max_send_wr = 5;
  open_with({});
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(post_rdma(a, i, IBV_WR_RDMA_WRITE, 0, 8, b, 0), 0);
  EXPECT_EQ(post_rdma(a, 5, IBV_WR_RDMA_WRITE, 0, 8, b, 0), ENOMEM);
  EXPECT_EQ(a.counter("refused_posts"), 1U);
  settle();
  EXPECT_EQ(post_rdma(a, 5, IBV_WR_RDMA_WRITE, 0, 8, b, 0), ENOMEM) << "done, but nobody polled";
  (void)completion(a);
  EXPECT_EQ(post_rdma(a, 5, IBV_WR_RDMA_WRITE, 0, 8, b, 0), 0);
  EXPECT_EQ(post_rdma(a, 6, IBV_WR_RDMA_WRITE, 0, 8, b, 0), ENOMEM) << "one polled, one place";
}

TEST_F(Limited, UnsignalledRequestsGiveTheirPlacesBackWithTheNextPolledCompletion) {
  cap.max_send_wr = 8;
  open_with({});
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) {
      const unsigned flags = i == 3 ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U;
      ASSERT_EQ(post_rdma(a, i, IBV_WR_RDMA_WRITE, 0, 8, b, 0, flags), 0) << "round " << round;
    }
    settle();
    EXPECT_EQ(post_rdma(a, 99, IBV_WR_RDMA_WRITE, 0, 8, b, 0), ENOMEM);
    EXPECT_EQ(completion(a).wr_id, 3U);
    // Four came back; the four behind the signalled one need another completion.
    for (std::uint64_t i = 0; i < 4; ++i) {
      const unsigned flags = i == 3 ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U;
      ASSERT_EQ(post_rdma(a, 10 + i, IBV_WR_RDMA_WRITE, 0, 8, b, 0, flags), 0);
    }
    EXPECT_EQ(post_rdma(a, 99, IBV_WR_RDMA_WRITE, 0, 8, b, 0), ENOMEM);
    EXPECT_EQ(completion(a).wr_id, 13U);
  }
}

TEST_F(Limited, AFullReceiveQueueRefusesWithEnomem) {
  cap.max_recv_wr = 4;
  open_with({});
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(post_receive(b, i, 0, 64), 0);
  EXPECT_EQ(post_receive(b, 4, 0, 64), ENOMEM);
  EXPECT_EQ(b.counter("refused_posts"), 1U);
  ASSERT_EQ(post_send(a, 1, 0, 8), 0);
  settle();
  EXPECT_EQ(post_receive(b, 4, 0, 64), ENOMEM) << "taken, but nobody polled";
  EXPECT_EQ(completion(b).wr_id, 0U);
  EXPECT_EQ(post_receive(b, 4, 0, 64), 0);
}

TEST_F(Limited, AChainStopsAtTheRequestThatHasNoPlace) {
  cap.max_send_wr = 2;
  open_with({});
  ibv_send_wr chain[3]{};
  for (std::size_t i = 0; i < 3; ++i) {
    chain[i].wr_id = i;
    chain[i].opcode = IBV_WR_RDMA_WRITE;
    chain[i].send_flags = IBV_SEND_SIGNALED;
    chain[i].next = i < 2 ? &chain[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(a.qp, chain, &bad), ENOMEM);
  EXPECT_EQ(bad, &chain[2]);
  EXPECT_EQ(completions(a, 2).size(), 2U) << "what came before is sent";
}

TEST_F(Limited, OverrunBreaksTheCompletionQueue) {
  open_with({});
  ibv_cq* small_cq = a.context->create_cq(4, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = small_cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = cap;
  ibv_qp* first = std::exchange(a.qp, a.context->create_qp(a.pd, init));
  ASSERT_EQ(modify_to(b, IBV_QPS_ERR), 0);
  ASSERT_EQ(modify_to(b, IBV_QPS_RESET), 0);
  connect();

  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(post_rdma(a, i, IBV_WR_RDMA_WRITE, 0, 8, b, 0), 0);
  settle();
  EXPECT_EQ(a.counter("cq_overruns"), 1U);
  const auto events = a.async_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(events[0].element.cq, small_cq);
  EXPECT_EQ(a.state(), IBV_QPS_ERR);
  ibv_wc wcs[8];
  EXPECT_EQ(ibv_poll_cq(small_cq, 8, wcs), 4) << "what was in it stays";
  EXPECT_LT(ibv_poll_cq(small_cq, 8, wcs), 0) << "then it says that it is broken";

  EXPECT_EQ(a.context->destroy_qp(a.qp), 0);
  EXPECT_EQ(a.context->destroy_cq(small_cq), 0);
  a.qp = first;
}

// -- numbers ---------------------------------------------------------------------------------------------------------

TEST_F(Limited, QueuePairNumbersStartWhereToldAndAreUsedAgain) {
  config_a.first_qpn = 0xabc0;
  open();
  EXPECT_EQ(a.qp->qp_num, 0xabc0U);
  ibv_qp* second = create(small);
  ibv_qp* third = create(small);
  EXPECT_EQ(second->qp_num, 0xabc1U);
  EXPECT_EQ(third->qp_num, 0xabc2U);
  EXPECT_EQ(a.context->destroy_qp(second), 0);
  ibv_qp* again = create(small);
  EXPECT_EQ(again->qp_num, 0xabc1U) << "the number used last comes back first";
  for (ibv_qp* qp : {again, third}) EXPECT_EQ(a.context->destroy_qp(qp), 0);
}

// A device that could not work is not made; the sentence names the member.
TEST(ImpossibleDevice, IsRefusedByName) {
  const auto refusal = [](auto spoil) -> std::string {
    SimNetwork network;
    DeviceConfig config;
    spoil(config);
    try {
      (void)open_sim(network, config);
    } catch (const Error& error) {
      return error.what();
    }
    return "opened";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal([](DeviceConfig& config) { config.first_qpn = 1U << 31; }), HasSubstr("first_qpn is 2147483648"));
  EXPECT_THAT(refusal([](DeviceConfig& config) { config.limits.max_sge = 65; }), HasSubstr("max_sge is 65; 1 to 64"));
  EXPECT_THAT(refusal([](DeviceConfig& config) { config.ports.clear(); }), HasSubstr("number of ports is 0"));
  EXPECT_THAT(refusal([](DeviceConfig& config) { config.name = "a:1"; }), HasSubstr("'a:1'"));
  EXPECT_THAT(refusal([](DeviceConfig& config) { config.name = "auto"; }), HasSubstr("'auto'"));
  EXPECT_THAT(refusal([](DeviceConfig& config) { config.ports[0].active_mtu = static_cast<ibv_mtu>(7); }),
              HasSubstr("active_mtu"));
  EXPECT_THAT(refusal([](DeviceConfig& config) { config.faults.packets = {PacketRule{.rate = 7}}; }),
              HasSubstr("is 7"));
}

TEST_F(RcPair, ControlNamesThePortsThatAreThere) {
  EXPECT_THROW(a.control().set_port_active(2, false), Error);
  EXPECT_THROW(a.control().set_pkey(0, 0, 0xffff), Error);
}

}  // namespace
}  // namespace verbatim::soft::testing
