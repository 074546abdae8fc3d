// UD: what a datagram brings along, whom it reaches, and that it may be lost.
#include <arpa/inet.h>

#include <cerrno>

#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

constexpr std::uint32_t grh_bytes = 40;
constexpr std::uint32_t qkey_of_b = 0x1b1b;
constexpr std::uint32_t qkey_of_a = 0x0a0a;

class Datagrams : public ::testing::Test, protected Pair {
 protected:
  Datagrams() { type = IBV_QPT_UD; }
  void SetUp() override {
    open();
    start(a, qkey_of_a);
    start(b, qkey_of_b);
    to_b = handle(a, b);
  }
  ~Datagrams() override {
    if (to_b != nullptr) a.context->destroy_ah(to_b);
  }
  static void start(Side& side, std::uint32_t qkey) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qkey = qkey;
    ASSERT_EQ(
        side.context->modify_qp(side.qp, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    ASSERT_EQ(modify_to(side, IBV_QPS_RTR), 0);
    attributes.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(side.context->modify_qp(side.qp, attributes, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  }
  static ibv_ah_attr address_of(Side& peer) {
    ibv_ah_attr address{};
    address.is_global = 1;
    address.port_num = 1;
    address.sl = 5;
    address.grh.dgid = peer.gid();
    address.grh.sgid_index = 1;
    address.grh.hop_limit = 33;
    address.grh.traffic_class = 106;
    address.grh.flow_label = 0x54321;
    return address;
  }
  static ibv_ah* handle(Side& from, Side& peer) {
    ibv_ah_attr address = address_of(peer);
    return from.context->create_ah(from.pd, address);
  }
  int send_to(Side& from, ibv_ah* to, const Side& peer, std::uint32_t qkey, std::uint64_t wr_id, std::uint32_t length) {
    return post(from, wr_id, IBV_WR_SEND, 0, length, [&](ibv_send_wr& wr) { wr.wr.ud = {to, peer.qp->qp_num, qkey}; });
  }
  int send_to_b(std::uint64_t wr_id, std::uint32_t length, std::uint32_t qkey = qkey_of_b) {
    return send_to(a, to_b, b, qkey, wr_id, length);
  }
  ibv_grh header(std::size_t at) const {
    ibv_grh grh{};
    std::memcpy(&grh, &b.memory[at], sizeof(grh));
    return grh;
  }

  ibv_ah* to_b = nullptr;
};

TEST_F(Datagrams, BringTheirRoute) {
  fill(a, 0, 100, 1);
  ASSERT_EQ(post_receive(b, 1, 4096, 200), 0);
  ASSERT_EQ(send_to_b(2, 100), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  const ibv_wc wc = completion(b);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.byte_len, 100 + grh_bytes);
  EXPECT_EQ(wc.src_qp, a.qp->qp_num);
  EXPECT_EQ(wc.sl, 5);
  EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0U);
  EXPECT_TRUE(same(a, 0, b, 4096 + grh_bytes, 100));
  const ibv_grh grh = header(4096);
  EXPECT_EQ(ntohl(grh.version_tclass_flow), 6U << 28 | 106U << 20 | 0x54321U);
  EXPECT_EQ(ntohs(grh.paylen), 100);
  EXPECT_EQ(grh.next_hdr, 0x1b);
  EXPECT_EQ(grh.hop_limit, 33);
  EXPECT_EQ(std::memcmp(grh.sgid.raw, a.gid().raw, 16), 0);
  EXPECT_EQ(std::memcmp(grh.dgid.raw, b.gid().raw, 16), 0);
}

TEST_F(Datagrams, AreAnsweredByWhatTheyCameWith) {
  ASSERT_EQ(post_receive(b, 1, 4096, 200), 0);
  ASSERT_EQ(post_receive(a, 3, 4096, 200), 0);
  ASSERT_EQ(send_to_b(2, 100), 0);
  EXPECT_EQ(completion(a).wr_id, 2U);
  ibv_wc wc = completion(b);
  ibv_grh grh = header(4096);
  ibv_ah* back = b.context->create_ah_from_wc(b.pd, wc, &grh, 1);
  ASSERT_NE(back, nullptr);
  ASSERT_EQ(post(b, 4, IBV_WR_SEND, 0, 50, [&](ibv_send_wr& wr) { wr.wr.ud = {back, wc.src_qp, qkey_of_a}; }), 0);
  const ibv_wc answer = completion(a);
  EXPECT_EQ(answer.wr_id, 3U);
  EXPECT_EQ(answer.src_qp, b.qp->qp_num);
  EXPECT_EQ(answer.sl, 5) << "on the same level";
  ibv_grh answered{};
  std::memcpy(&answered, &a.memory[4096], sizeof(answered));
  EXPECT_EQ(ntohl(answered.version_tclass_flow), 6U << 28 | 106U << 20 | 0x54321U);
  EXPECT_EQ(b.context->destroy_ah(back), 0);

  wc.wc_flags = 0;
  EXPECT_EQ(b.context->create_ah_from_wc(b.pd, wc, &grh, 1), nullptr) << "no GRH, no way back";
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Datagrams, WithAnotherQkeyAreCountedAndDropped) {
  ASSERT_EQ(post_receive(b, 1, 4096, 200), 0);
  ASSERT_EQ(send_to_b(2, 100, qkey_of_b + 1), 0);
  settle();
  EXPECT_TRUE(polled(b).empty());
  EXPECT_EQ(b.counter("bad_qkeys"), 1U);
  EXPECT_EQ(polled(a).size(), 1U) << "its sender can't tell";
  ASSERT_EQ(send_to_b(3, 100), 0);
  EXPECT_EQ(completion(b).wr_id, 1U);
  // The top bit: the sender's own Q_Key, which is not b's.
  ASSERT_EQ(send_to_b(4, 100, 0x80000000U | qkey_of_b), 0);
  settle();
  EXPECT_EQ(b.counter("bad_qkeys"), 2U);
}

TEST_F(Datagrams, AsLongAsThePortsMtuAndNotLonger) {
  a.control().set_active_mtu(1, IBV_MTU_1024);
  ASSERT_EQ(post_receive(b, 1, 4096, 4096), 0);
  ASSERT_EQ(send_to_b(2, 1024), 0);
  EXPECT_EQ(completion(b).byte_len, 1024 + grh_bytes);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  ASSERT_EQ(send_to_b(3, 1025), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(a.state(), IBV_QPS_SQE);
  ASSERT_EQ(modify_to(a, IBV_QPS_RTS), 0);
  ASSERT_EQ(post_receive(b, 1, 4096, 4096), 0);
  ASSERT_EQ(send_to_b(4, 10), 0);
  EXPECT_EQ(completion(b).status, IBV_WC_SUCCESS);
}

TEST_F(Datagrams, ThatDoNotFitAreDroppedAndTheReceiveWaits) {
  b.memory[4096 + 100] = std::byte{0x5a};
  ASSERT_EQ(post_receive(b, 1, 4096, 100), 0);
  ASSERT_EQ(send_to_b(2, 61), 0);  // one more than what is left behind the header
  settle();
  EXPECT_TRUE(polled(b).empty());
  EXPECT_EQ(b.memory[4096 + 100], std::byte{0x5a});
  EXPECT_EQ(b.counter("dropped"), 1U);
  ASSERT_EQ(send_to_b(3, 60), 0);
  EXPECT_EQ(completion(b).byte_len, 100U);
}

TEST_F(Datagrams, WithoutAReceiveAreDropped) {
  ASSERT_EQ(send_to_b(2, 10), 0);
  settle();
  ASSERT_EQ(post_receive(b, 1, 4096, 200), 0);
  settle();
  EXPECT_TRUE(polled(b).empty());
  EXPECT_EQ(b.counter("dropped"), 1U);
  EXPECT_EQ(b.counter("rnr_nak_sent"), 0U);
}

TEST_F(Datagrams, MayBeLostRepeatedAndOvertaken) {
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(post_receive(b, i, 4096 + 256 * i, 256), 0);
  const auto numbered = [&](std::uint64_t number) {
    a.set_word(0, number);
    ASSERT_EQ(send_to_b(number, 8), 0);
    EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
    network.run_for(std::chrono::microseconds(2));
  };
  a.fault({.fault = PacketFault::drop, .nth = 1});
  numbered(1);
  a.fault({.fault = PacketFault::reorder, .nth = 1, .delay = std::chrono::microseconds(10)});
  numbered(2);
  numbered(3);
  settle();
  a.fault({.fault = PacketFault::duplicate, .nth = 1, .delay = std::chrono::microseconds(1)});
  numbered(4);
  settle();
  const auto wcs = polled(b);
  ASSERT_EQ(wcs.size(), 4U);
  const std::uint64_t arrived[] = {3, 2, 4, 4};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(b.word(4096 + 256 * i + grh_bytes), arrived[i]);
}

TEST_F(Datagrams, LossTakesNoneTwiceAndChangesNone) {
  a.fault({.fault = PacketFault::drop, .rate = 0.2});
  std::uint64_t expected = 0;
  std::uint64_t arrived = 0;
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    ASSERT_EQ(post_receive(b, i, 4096, 256), 0);
    fill(a, 0, 200, static_cast<unsigned>(i));
    a.set_word(0, i);
    ASSERT_EQ(send_to_b(i, 200), 0);
    EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
    network.run_for(std::chrono::microseconds(2));
    if (polled(b).empty()) {
      ASSERT_EQ(modify_to(b, IBV_QPS_ERR), 0);  // takes the receive back
      ASSERT_EQ(modify_to(b, IBV_QPS_RESET), 0);
      start(b, qkey_of_b);
      continue;
    }
    ++arrived;
    ASSERT_GT(b.word(4096 + grh_bytes), expected);
    expected = b.word(4096 + grh_bytes);
    ASSERT_TRUE(same(a, 0, b, 4096 + grh_bytes, 200));
  }
  EXPECT_GT(arrived, 1500U);
  EXPECT_LT(arrived, 1700U);
}

TEST_F(Datagrams, HandlesAreCheckedAgainstTheTables) {
  const auto refused = [&](auto edit) {
    ibv_ah_attr address = address_of(b);
    edit(address);
    errno = 0;
    EXPECT_EQ(a.context->create_ah(a.pd, address), nullptr);
    EXPECT_EQ(errno, EINVAL);
  };
  refused([](ibv_ah_attr& address) { address.is_global = 0; });
  refused([](ibv_ah_attr& address) { address.grh.sgid_index = 2; });
  refused([](ibv_ah_attr& address) { address.port_num = 2; });
  refused([](ibv_ah_attr& address) { address.port_num = 0; });
}

TEST_F(Datagrams, NoMoreHandlesThanTheLimit) {
  Side limited;
  DeviceConfig config;
  config.limits.max_ah = 1;
  open(limited, config);
  ibv_ah* first = handle(limited, b);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(handle(limited, b), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(limited.context->destroy_ah(first), 0);
  first = handle(limited, b);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(limited.context->destroy_ah(first), 0);
  close(limited);
}

}  // namespace
}  // namespace verbatim::soft::testing
