// Which requests make a completion.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class Unsignalled : public ConformanceCase {};

TEST_F(Unsignalled, RequestsCompleteSilently) {
  connect();
  for (std::uint64_t i = 0; i < 4; ++i) b.receive(i, {b.piece(0, 64)});
  for (std::uint64_t i = 0; i < 3; ++i) a.post(with_flags(send(i, {a.piece(0, 64)}), 0));
  a.post(send(3, {a.piece(0, 64)}));

  EXPECT_TRUE(completed(a.sent(), 3, IBV_WC_SEND));
  EXPECT_TRUE(a.idle(a.send_cq));
  EXPECT_EQ(b.received(4).size(), 4u);
}

TEST_F(Unsignalled, AQpThatSignalsAllIgnoresTheFlag) {
  for (Side* side : {&a, &b}) {
    QpOptions options = side->qp_options();
    options.signal_all = true;
    side->make_qp(options);
    side->make_region(4096);
  }
  connect_qps();
  b.receive(1, {b.piece(0, 64)});
  a.post({with_flags(write(2, {a.piece(0, 64)}, b, 0), 0), with_flags(send(3, {a.piece(0, 64)}), 0)});
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(completed(a.sent(), 3, IBV_WC_SEND));
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
}

TEST_F(Unsignalled, FailuresAlwaysComplete) {
  connect();
  SendRequest bad = with_flags(write(1, {a.piece(0, 64)}, b, 0), 0);
  bad.rkey ^= 0x5a5a5a00;
  a.post(bad);
  EXPECT_TRUE(failed(a.sent(), 1, IBV_WC_REM_ACCESS_ERR));
}

TEST_F(Unsignalled, SlotsComeBackWithTheNextCompletion) {
  connect();
  const std::uint32_t slots = a.cap.max_send_wr;
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (std::uint32_t i = 0; i + 1 < slots; ++i) a.post(with_flags(write(i, {a.piece(0, 16)}, b, 0), 0));
    a.post(write(1000 + round, {a.piece(0, 16)}, b, 0));
    EXPECT_TRUE(completed(a.sent(), 1000 + round, IBV_WC_RDMA_WRITE));
  }
  EXPECT_TRUE(a.idle(a.send_cq));
}

}  // namespace
}  // namespace verbatim::conformance
