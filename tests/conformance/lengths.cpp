// Messages that are longer than what waits for them, or than what the device carries.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class TooLong : public ConformanceCase {
 protected:
  void expect_length_error(std::uint32_t room, std::uint32_t bytes) {
    connect();
    b.receive(1, {b.piece(0, room)});
    b.receive(2, {b.piece(32'768, 4096)});
    a.fill(0, bytes, 1);
    a.post({send(3, {a.piece(0, bytes)}), send(4, {a.piece(0, 8)})});

    const std::vector<ibv_wc> sent = a.sent(2);
    EXPECT_TRUE(
        failed(sent[0], 3,
               a.expected(IBV_WC_REM_INV_REQ_ERR, Deviation::overlong_message_is_operation_error, IBV_WC_REM_OP_ERR)));
    EXPECT_TRUE(failed(sent[1], 4, IBV_WC_WR_FLUSH_ERR));
    const std::vector<ibv_wc> received = b.received(2);
    EXPECT_TRUE(failed(received[0], 1, length_error(b)));
    EXPECT_TRUE(failed(received[1], 2, IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(holds_zeros(b, room, 32'768 - room));
    EXPECT_TRUE(a.wait_for_state(IBV_QPS_ERR));
    EXPECT_TRUE(b.wait_for_state(IBV_QPS_ERR));
  }
};

TEST_F(TooLong, ByOneByte) {
  expect_length_error(63, 64);
}

TEST_F(TooLong, InALaterPacket) {
  expect_length_error(3000, 4000);
}

TEST_F(TooLong, ForAReceiveWithoutABuffer) {
  expect_length_error(0, 1);
}

TEST_F(TooLong, ForTheDevice) {
  const std::uint64_t bytes = std::uint64_t{a.port.max_msg_sz} + 1;
  if (bytes > (64 << 20))
    GTEST_SKIP() << "the device's longest message, " << bytes - 1 << " bytes, is too long for a test";
  SKIP_WHERE_IT_DEVIATES(a, Deviation::message_beyond_limit_is_carried);
  connect(IBV_QPT_RC, {}, bytes);
  const Posted posted = a.endpoint->post_send(a.qp, {write(1, {a.piece(0, static_cast<std::uint32_t>(bytes))}, b, 0)});
  // Refused at once, or by the device when it gets there.
  if (posted.error == 0) {
    const ibv_wc ended = a.sent();
    EXPECT_EQ(ended.status, IBV_WC_LOC_LEN_ERR) << ibv_wc_status_str(ended.status);
  }
}

}  // namespace
}  // namespace verbatim::conformance
