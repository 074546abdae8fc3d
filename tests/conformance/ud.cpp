// Datagrams.
#include <cerrno>
#include <set>

#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

constexpr std::uint32_t grh_bytes = 40;
constexpr std::uint32_t qkey = 0x11111111;

class Datagrams : public ConformanceCase {
 protected:
  void SetUp() override {
    connect(IBV_QPT_UD);
    to_b = ah(a, b);
  }

  static Ah ah(const Side& from, const Side& to) {
    const Made<Ah> made = from.endpoint->create_ah(from.pd, path(from.address, to.address));
    EXPECT_EQ(made.error, 0);
    return made.object;
  }

  SendRequest to_peer(std::uint64_t id, std::vector<ibv_sge> pieces) {
    return datagram(id, std::move(pieces), to_b, b.qpn, qkey);
  }

  [[nodiscard]] std::uint32_t mtu() const { return 128u << a.port.active_mtu; }

  Ah to_b;
};

TEST_F(Datagrams, ArriveBehindFortyBytes) {
  a.fill(0, 200, 1);
  b.receive(1, {b.piece(0, 1024)});
  a.post(to_peer(2, {a.piece(0, 200)}));

  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 1, IBV_WC_RECV));
  EXPECT_EQ(received.byte_len, 200 + grh_bytes);
  EXPECT_EQ(received.src_qp, a.qpn);
  EXPECT_EQ(received.qp_num, b.qpn);
  if (a.address.global) {
    EXPECT_EQ(received.wc_flags & IBV_WC_GRH, static_cast<unsigned>(IBV_WC_GRH));
  }
  EXPECT_TRUE(holds_pattern(b, grh_bytes, 200, 1));
  EXPECT_TRUE(holds_zeros(b, grh_bytes + 200, 100));
}

TEST_F(Datagrams, CarryImmediates) {
  b.receive(1, {b.piece(0, 1024)});
  SendRequest request = to_peer(2, {a.piece(0, 10)});
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.immediate = 0xcafe0001;
  a.post(request);
  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 1, IBV_WC_RECV));
  EXPECT_EQ(received.wc_flags & IBV_WC_WITH_IMM, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(immediate_of(received), 0xcafe0001);
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

TEST_F(Datagrams, FortyBytesMayBeAPieceOfTheirOwn) {
  a.fill(0, 100, 3);
  b.receive(1, {b.piece(8192, grh_bytes), b.piece(0, 100)});
  a.post(to_peer(2, {a.piece(0, 33), a.piece(33, 67)}));
  EXPECT_EQ(b.received().byte_len, 100 + grh_bytes);
  EXPECT_TRUE(holds_pattern(b, 0, 100, 3));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

TEST_F(Datagrams, EmptyOnesArrive) {
  b.receive(1, {b.piece(0, grh_bytes)});
  a.post(to_peer(2, {}));
  EXPECT_EQ(b.received().byte_len, grh_bytes);
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

TEST_F(Datagrams, AreAnsweredByWhatTheyCameWith) {
  b.receive(1, {b.piece(0, 1024)});
  a.post(to_peer(2, {a.piece(0, 10)}));
  const ibv_wc received = b.received();
  const Made<Ah> back = b.endpoint->create_ah_from_wc(b.pd, received, b.buffer, 0, port_number);
  ASSERT_EQ(back.error, 0);

  b.fill(4096, 50, 4);
  a.receive(3, {a.piece(8192, 1024)});
  b.post(datagram(4, {b.piece(4096, 50)}, back.object, received.src_qp, qkey));
  EXPECT_TRUE(completed(a.received(), 3, IBV_WC_RECV));
  EXPECT_TRUE(holds_pattern(a, 8192 + grh_bytes, 50, 4));
  EXPECT_TRUE(completed(b.sent(), 4, IBV_WC_SEND));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

// What is dropped is dropped silently: the sender's request completes, and the next datagram takes the receive.
TEST_F(Datagrams, WithTheWrongQkeyAreDropped) {
  b.receive(1, {b.piece(0, 1024)});
  SendRequest wrong = to_peer(2, {a.piece(0, 10)});
  wrong.remote_qkey = qkey + 1;
  a.post(wrong);
  a.post(to_peer(3, {a.piece(0, 20)}));
  EXPECT_EQ(b.received().byte_len, 20 + grh_bytes);
  const std::vector<ibv_wc> sent = a.sent(2);
  EXPECT_TRUE(completed(sent[0], 2, IBV_WC_SEND));
  EXPECT_TRUE(completed(sent[1], 3, IBV_WC_SEND));
  EXPECT_EQ(b.state(), IBV_QPS_RTS);
}

TEST_F(Datagrams, ToNobodyAreDropped) {
  b.receive(1, {b.piece(0, 1024)});
  SendRequest lost = to_peer(2, {a.piece(0, 10)});
  lost.remote_qpn = 0xfffff0;
  a.post(lost);
  a.post(to_peer(3, {a.piece(0, 20)}));
  EXPECT_EQ(b.received().byte_len, 20 + grh_bytes);
  EXPECT_EQ(a.sent(2).size(), 2u);
}

TEST_F(Datagrams, ThatFindNoReceiveAreDropped) {
  a.post(to_peer(1, {a.piece(0, 10)}));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_SEND));
  fabric->advance(5ms);
  b.receive(2, {b.piece(0, 1024)});
  a.post(to_peer(3, {a.piece(0, 20)}));
  EXPECT_EQ(b.received().byte_len, 20 + grh_bytes);
  EXPECT_TRUE(completed(a.sent(), 3, IBV_WC_SEND));
}

// A Q_Key with the high bit set stands for the sending QP's own (specification, volume 1, 10.2.5).
TEST_F(Datagrams, ControlledQkeyIsTheQpsOwn) {
  SKIP_WHERE_IT_DEVIATES(a, Deviation::controlled_qkey_is_sent);
  b.receive(1, {b.piece(0, 1024)});
  SendRequest request = to_peer(2, {a.piece(0, 10)});
  request.remote_qkey = 0x80000000;
  a.post(request);
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

TEST_F(Datagrams, FollowAChangeOfTheQkey) {
  ibv_qp_attr attributes{};
  attributes.qkey = 0x2222;
  ASSERT_EQ(b.endpoint->modify_qp(b.qp, attributes, IBV_QP_QKEY), 0);
  b.receive(1, {b.piece(0, 1024)});
  a.post(to_peer(2, {a.piece(0, 10)}));
  SendRequest right = to_peer(3, {a.piece(0, 20)});
  right.remote_qkey = 0x2222;
  a.post(right);
  EXPECT_EQ(b.received().byte_len, 20 + grh_bytes);
  EXPECT_EQ(a.sent(2).size(), 2u);
}

TEST_F(Datagrams, AsLongAsThePacketAndNotLonger) {
  a.fill(0, mtu(), 5);
  b.receive(1, {b.piece(0, mtu() + grh_bytes)});
  a.post(to_peer(2, {a.piece(0, mtu())}));
  EXPECT_EQ(b.received().byte_len, mtu() + grh_bytes);
  EXPECT_TRUE(holds_pattern(b, grh_bytes, mtu(), 5));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));

  b.receive(3, {b.piece(0, 16'384)});
  const Posted posted = a.endpoint->post_send(a.qp, {to_peer(4, {a.piece(0, mtu() + 1)})});
  // No packet leaves. That this is no error is the letter of the specification (volume 1, C10-93.1.1); devices that
  // refuse the request, or fail it, are about as well.
  if (posted.error == 0) {
    const ibv_wc ended = a.sent();
    EXPECT_TRUE(ended.status == IBV_WC_SUCCESS || ended.status == IBV_WC_LOC_LEN_ERR)
        << ibv_wc_status_str(ended.status);
  }
  fabric->advance(2ms);
  EXPECT_TRUE(b.idle(b.recv_cq));
}

TEST_F(Datagrams, FromManySendersComeToOne) {
  Side first_of_a = a;
  a.make_qp(a.qp_options(IBV_QPT_UD));
  a.connect(b);
  for (std::uint64_t i = 0; i < 20; ++i) b.receive(i, {b.piece(0, 256)});
  for (std::uint64_t i = 0; i < 10; ++i) {
    first_of_a.post(to_peer(i, {a.piece(0, 10)}));
    a.post(to_peer(i, {a.piece(0, 10)}));
  }
  std::multiset<std::uint32_t> sources;
  for (const ibv_wc& wc : b.received(20)) sources.insert(wc.src_qp);
  EXPECT_EQ(sources.count(first_of_a.qpn), 10u);
  EXPECT_EQ(sources.count(a.qpn), 10u);
  EXPECT_EQ(a.sent(20).size(), 20u);
}

TEST_F(Datagrams, InlineOnesAreFreeAtOnce) {
  if (a.cap.max_inline_data < 32) GTEST_SKIP() << "the device has no inline data";
  a.fill(0, 32, 6);
  b.receive(1, {b.piece(0, 256)});
  a.post(with_flags(to_peer(2, {a.piece(0, 32)}), IBV_SEND_SIGNALED | IBV_SEND_INLINE));
  a.clear(0, 32);
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_TRUE(holds_pattern(b, grh_bytes, 32, 6));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

// Too small for the datagram and its forty bytes: dropped or the receive fails, but nothing is written beyond it.
TEST_F(Datagrams, LongerThanTheReceiveDoNotOverflowIt) {
  a.fill(0, 100, 7);
  b.receive(1, {b.piece(0, grh_bytes + 99)});
  a.post(to_peer(2, {a.piece(0, 100)}));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  fabric->advance(5ms);
  const Polled polled = b.endpoint->poll_cq(b.recv_cq, 1);
  if (polled.result == 1) {
    EXPECT_TRUE(failed(polled.completions[0], 1, length_error(b)));
    RecordProperty("receive", "failed");
  }
  EXPECT_TRUE(holds_zeros(b, grh_bytes + 99, 100));
}

// A failed datagram stops the send queue only, and RTS is one step away.
TEST_F(Datagrams, FailedSendStopsTheSendQueueAlone) {
  ibv_sge piece = a.piece(0, 10);
  piece.lkey = 0x00badbad;
  a.receive(1, {a.piece(0, 1024)});
  a.post({to_peer(2, {piece}), to_peer(3, {a.piece(0, 10)})});
  const std::vector<ibv_wc> ended = a.sent(2);
  EXPECT_TRUE(failed(ended[0], 2, key_error(a)));
  EXPECT_TRUE(failed(ended[1], 3, IBV_WC_WR_FLUSH_ERR));
  // The specification has SQE (volume 1, 10.3.1); a device may go to ERR, from where the way is longer.
  const auto stopped = [&] { return a.state() == IBV_QPS_SQE || a.state() == IBV_QPS_ERR; };
  ASSERT_TRUE(fabric->wait_until(stopped, patience));
  if (a.state() == IBV_QPS_SQE) {
    EXPECT_TRUE(a.idle(a.recv_cq));
    a.to(IBV_QPS_RTS);
  } else {
    EXPECT_TRUE(failed(a.received(), 1, IBV_WC_WR_FLUSH_ERR));
    a.to(IBV_QPS_RESET);
    a.connect(b);
  }
  b.receive(4, {b.piece(0, 1024)});
  a.post(to_peer(5, {a.piece(0, 10)}));
  EXPECT_TRUE(completed(b.received(), 4, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 5, IBV_WC_SEND));
}

TEST_F(Datagrams, AreNotForOtherOperations) {
  SendRequest request = write(1, {a.piece(0, 8)}, b, 0);
  const Posted posted = a.endpoint->post_send(a.qp, {request});
  if (posted.error == 0) {
    EXPECT_NE(a.sent().status, IBV_WC_SUCCESS);
  }
  EXPECT_TRUE(holds_zeros(b, 0, 8));
}

}  // namespace
}  // namespace verbatim::conformance
