// The newer calls: ibv_wr_* for posting, ibv_start_poll … ibv_end_poll for polling.
#include <cerrno>

#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

constexpr std::uint64_t every_operation = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                          IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                          IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                          IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

class ExtendedPosting : public ConformanceCase {
 protected:
  // Whether the device has it.
  bool connect_extended(ibv_qp_type type = IBV_QPT_RC) {
    for (Side* side : {&a, &b}) {
      QpOptions options = side->qp_options(type);
      options.pd = side->pd;
      options.send_cq = side->send_cq;
      options.recv_cq = side->recv_cq;
      options.send_operations =
          type == IBV_QPT_UD ? IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM : every_operation;
      const MadeQp trial = side->endpoint->create_qp(options);
      if (trial.error == EOPNOTSUPP || (trial.error == 0 && !trial.extended)) return false;
      EXPECT_EQ(trial.error, 0);
      EXPECT_EQ(side->endpoint->destroy_qp(trial.qp), 0);
      side->make_qp(options);
      side->make_region(16'384);
    }
    connect_qps();
    return true;
  }

  int post_extended(const std::vector<SendRequest>& requests) { return a.endpoint->post_send_extended(a.qp, requests); }

  // The request sends the first sixty bytes of a's buffer.
  void expect_delivery(const SendRequest& request) {
    a.fill(0, 60, 3);
    b.receive(1, {b.piece(100, 100)});
    ASSERT_EQ(post_extended({request}), 0);
    EXPECT_EQ(b.received().byte_len, 60u);
    EXPECT_TRUE(holds_pattern(b, 100, 60, 3));
    EXPECT_TRUE(completed(a.sent(), request.id, IBV_WC_SEND));
  }
};

TEST_F(ExtendedPosting, EachOperation) {
  if (!connect_extended()) GTEST_SKIP() << "the device has no ibv_wr_*";
  a.fill(0, 2000, 1);
  b.fill(4096, 2000, 2);
  b.set_word(8192, 10);
  for (std::uint64_t i = 0; i < 3; ++i) b.receive(i, {b.piece(12'288, 2000)});
  ASSERT_EQ(post_extended({
                send(1, {a.piece(0, 2000)}),
                send_with_immediate(2, {a.piece(0, 100)}, 22),
                write(3, {a.piece(0, 2000)}, b, 0),
                write_with_immediate(4, {a.piece(0, 10)}, b, 2100, 44),
                read(5, {a.piece(4096, 2000)}, b, 4096),
                fetch_and_add(6, a.piece(8192, 8), b, 8192, 5),
                compare_and_swap(7, a.piece(8200, 8), b, 8192, 15, 99),
            }),
            0);

  const std::vector<ibv_wc> sent = a.sent(7);
  const ibv_wc_opcode opcodes[] = {IBV_WC_SEND,      IBV_WC_SEND,      IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE,
                                   IBV_WC_RDMA_READ, IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP};
  for (std::uint64_t i = 0; i < 7; ++i) EXPECT_TRUE(completed(sent[i], i + 1, opcodes[i]));
  const std::vector<ibv_wc> received = b.received(3);
  EXPECT_EQ(received[0].byte_len, 2000u);
  EXPECT_EQ(immediate_of(received[1]), 22u);
  EXPECT_TRUE(completed(received[2], 2, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(immediate_of(received[2]), 44u);
  EXPECT_TRUE(holds_pattern(b, 0, 2000, 1));
  EXPECT_TRUE(holds_pattern(a, 4096, 2000, 2));
  EXPECT_EQ(a.word(8192), 10u);
  EXPECT_EQ(a.word(8200), 15u);
  EXPECT_EQ(b.word(8192), 99u);
}

TEST_F(ExtendedPosting, InlineInOnePiece) {
  SKIP_WHERE_IT_DEVIATES(a, Deviation::inline_builder_needs_the_flag);
  if (!connect_extended()) GTEST_SKIP() << "the device has no ibv_wr_*";
  expect_delivery(with_flags(send(1, {a.piece(0, 60)}), IBV_SEND_SIGNALED | IBV_SEND_INLINE));
}

TEST_F(ExtendedPosting, InlineInSeveralPieces) {
  SKIP_WHERE_IT_DEVIATES(a, Deviation::list_builders_miscount);
  if (!connect_extended()) GTEST_SKIP() << "the device has no ibv_wr_*";
  expect_delivery(with_flags(send(1, {a.piece(0, 20), a.piece(20, 40)}), IBV_SEND_SIGNALED | IBV_SEND_INLINE));
}

TEST_F(ExtendedPosting, SeveralPieces) {
  SKIP_WHERE_IT_DEVIATES(a, Deviation::list_builders_miscount);
  if (!connect_extended()) GTEST_SKIP() << "the device has no ibv_wr_*";
  expect_delivery(send(1, {a.piece(0, 1), a.piece(1, 59)}));
}

TEST_F(ExtendedPosting, AbortedRequestsAreNotPosted) {
  if (!connect_extended()) GTEST_SKIP() << "the device has no ibv_wr_*";
  b.receive(1, {b.piece(0, 100)});
  a.endpoint->abort_send_extended(a.qp, {send(1, {a.piece(0, 10)}), send(2, {a.piece(0, 10)})});
  ASSERT_EQ(post_extended({send(3, {a.piece(0, 20)})}), 0);
  EXPECT_TRUE(completed(a.sent(), 3, IBV_WC_SEND));
  EXPECT_EQ(b.received().byte_len, 20u);
  EXPECT_TRUE(a.idle(a.send_cq));
}

TEST_F(ExtendedPosting, AnErrorShowsAtTheEndAndNothingIsPosted) {
  if (!connect_extended()) GTEST_SKIP() << "the device has no ibv_wr_*";
  const std::uint32_t more_than_fits = 4 * a.cap.max_send_wr;
  const std::vector<SendRequest> requests(more_than_fits, write(1, {a.piece(0, 8)}, b, 0));
  EXPECT_NE(post_extended(requests), 0);  // which errno is not said
  fabric->advance(1ms);
  EXPECT_TRUE(a.idle(a.send_cq));
  ASSERT_EQ(post_extended({write(2, {a.piece(0, 8)}, b, 0)}), 0);
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_RDMA_WRITE));
}

TEST_F(ExtendedPosting, Datagrams) {
  if (!connect_extended(IBV_QPT_UD)) GTEST_SKIP() << "the device has no ibv_wr_*";
  const Ah ah = a.endpoint->create_ah(a.pd, path(a.address, b.address)).object;
  a.fill(0, 100, 4);
  b.receive(1, {b.piece(0, 1024)});
  ASSERT_EQ(post_extended({datagram(2, {a.piece(0, 100)}, ah, b.qpn, Route{}.qkey)}), 0);
  EXPECT_EQ(b.received().byte_len, 140u);
  EXPECT_TRUE(holds_pattern(b, 40, 100, 4));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

class ExtendedPolling : public ConformanceCase {
 protected:
  void SetUp() override {
    const std::uint64_t fields = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
                                 IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
                                 IBV_WC_EX_WITH_DLID_PATH_BITS;
    for (Side* side : {&a, &b}) {
      for (Cq* cq : {&side->send_cq, &side->recv_cq}) {
        const Made<Cq> made =
            side->endpoint->create_cq({.entries = 64, .channel = {}, .extended = true, .wc_flags = fields});
        if (made.error == EOPNOTSUPP || made.error == ENOSYS) GTEST_SKIP() << "the device has no extended CQs";
        ASSERT_EQ(made.error, 0);
        *cq = made.object;
      }
    }
  }

  std::vector<ibv_wc> poll(const Side& side, Cq cq, std::size_t count) {
    std::vector<ibv_wc> all;
    const auto all_came = [&] {
      const Polled polled = side.endpoint->poll_cq_extended(cq, static_cast<int>(count - all.size()));
      EXPECT_TRUE(polled.result == 0 || polled.result == ENOENT);
      all.insert(all.end(), polled.completions.begin(), polled.completions.end());
      return all.size() == count;
    };
    EXPECT_TRUE(fabric->wait_until(all_came, patience));
    all.resize(count);
    return all;
  }
};

TEST_F(ExtendedPolling, AnEmptyOneSaysSo) {
  EXPECT_EQ(a.endpoint->poll_cq_extended(a.send_cq, 4).result, ENOENT);
}

TEST_F(ExtendedPolling, ReadsTheFields) {
  connect();
  b.receive(1, {b.piece(0, 64)});
  b.receive(2, {b.piece(0, 64)});
  b.receive(3, {});
  a.post({send(4, {a.piece(0, 33)}), send_with_immediate(5, {a.piece(0, 44)}, 55),
          write_with_immediate(6, {a.piece(0, 10)}, b, 0, 66)});
  const std::vector<ibv_wc> received = poll(b, b.recv_cq, 3);
  EXPECT_TRUE(completed(received[0], 1, IBV_WC_RECV));
  EXPECT_EQ(received[0].byte_len, 33u);
  EXPECT_EQ(received[0].qp_num, b.qpn);
  EXPECT_TRUE(completed(received[1], 2, IBV_WC_RECV));
  EXPECT_EQ(received[1].wc_flags & IBV_WC_WITH_IMM, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(immediate_of(received[1]), 55u);
  EXPECT_TRUE(completed(received[2], 3, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(immediate_of(received[2]), 66u);
  const std::vector<ibv_wc> sent = poll(a, a.send_cq, 3);
  EXPECT_TRUE(completed(sent[0], 4, IBV_WC_SEND));
  EXPECT_TRUE(completed(sent[2], 6, IBV_WC_RDMA_WRITE));
  EXPECT_EQ(sent[2].qp_num, a.qpn);
}

TEST_F(ExtendedPolling, ReadsFailures) {
  connect();
  a.receive(1, {});
  a.receive(2, {});
  a.to(IBV_QPS_ERR);
  const std::vector<ibv_wc> ended = poll(a, a.recv_cq, 2);
  EXPECT_TRUE(failed(ended[0], 1, IBV_WC_WR_FLUSH_ERR));
  EXPECT_TRUE(failed(ended[1], 2, IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(ended[1].qp_num, a.qpn);
}

TEST_F(ExtendedPolling, ServesThePlainCallToo) {
  connect();
  b.receive(1, {b.piece(0, 64)});
  a.post(send(2, {a.piece(0, 64)}));
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

TEST_F(ExtendedPolling, EachDatagramsSource) {
  connect(IBV_QPT_UD);
  const Ah ah = a.endpoint->create_ah(a.pd, path(a.address, b.address)).object;
  b.receive(1, {b.piece(0, 1024)});
  a.post(datagram(2, {a.piece(0, 10)}, ah, b.qpn, Route{}.qkey));
  const ibv_wc received = poll(b, b.recv_cq, 1)[0];
  EXPECT_TRUE(completed(received, 1, IBV_WC_RECV));
  EXPECT_EQ(received.src_qp, a.qpn);
  EXPECT_EQ(received.byte_len, 50u);
  EXPECT_TRUE(completed(poll(a, a.send_cq, 1)[0], 2, IBV_WC_SEND));
}

}  // namespace
}  // namespace verbatim::conformance
