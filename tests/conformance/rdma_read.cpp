// RDMA READ on a reliable connection.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class RdmaRead : public ConformanceCase {};

TEST_F(RdmaRead, FetchesBytesAndTellsTheTargetNothing) {
  connect();
  b.fill(700, 500, 1);
  a.post(read(1, {a.piece(100, 500)}, b, 700));

  const ibv_wc done = a.sent();
  EXPECT_TRUE(completed(done, 1, IBV_WC_RDMA_READ));
  EXPECT_EQ(done.byte_len, 500u);
  EXPECT_TRUE(holds_pattern(a, 100, 500, 1));
  EXPECT_TRUE(holds_zeros(a, 0, 100));
  EXPECT_TRUE(holds_zeros(a, 600, 100));
  EXPECT_TRUE(b.idle(b.recv_cq));
  EXPECT_TRUE(b.idle(b.send_cq));
}

TEST_F(RdmaRead, ScattersWhatItFetches) {
  connect();
  b.fill(0, 5000, 2);
  a.post(read(1, {a.piece(0, 1), a.piece(8192, 1500), a.piece(16384, 3499)}, b, 0));

  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_RDMA_READ));
  std::vector<std::uint8_t> fetched = a.endpoint->read(a.buffer, 0, 1);
  const std::vector<std::uint8_t> second = a.endpoint->read(a.buffer, 8192, 1500);
  const std::vector<std::uint8_t> third = a.endpoint->read(a.buffer, 16384, 3499);
  fetched.insert(fetched.end(), second.begin(), second.end());
  fetched.insert(fetched.end(), third.begin(), third.end());
  EXPECT_EQ(fetched, b.endpoint->read(b.buffer, 0, 5000));
}

TEST_F(RdmaRead, OfNothingNeedsNoKey) {
  connect();
  SendRequest nothing = read(1, {}, b, 0);
  nothing.rkey = 0;
  nothing.remote_address = 0;
  a.post(nothing);
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_RDMA_READ));
}

TEST_F(RdmaRead, MoreThanMayBeOutstandingWaitTheirTurn) {
  Route route;
  route.reads_out = 1;
  route.reads_in = 1;
  connect(IBV_QPT_RC, route);
  constexpr std::uint32_t count = 32;
  constexpr std::uint32_t bytes = 2000;
  b.fill(0, count * bytes, 3);
  for (std::uint32_t i = 0; i < count; ++i) a.post(read(i, {a.piece(i * bytes, bytes)}, b, i * bytes));

  const std::vector<ibv_wc> done = a.sent(count);
  for (std::uint32_t i = 0; i < count; ++i) EXPECT_TRUE(completed(done[i], i, IBV_WC_RDMA_READ));
  EXPECT_TRUE(holds_pattern(a, 0, count * bytes, 3));
}

TEST_F(RdmaRead, SeesTheWriteBeforeIt) {
  connect();
  a.fill(0, 3000, 4);
  a.post({write(1, {a.piece(0, 3000)}, b, 0), read(2, {a.piece(8192, 3000)}, b, 0)});
  const std::vector<ibv_wc> done = a.sent(2);
  EXPECT_TRUE(completed(done[0], 1, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(completed(done[1], 2, IBV_WC_RDMA_READ));
  EXPECT_TRUE(holds_pattern(a, 8192, 3000, 4));
}

// Without the fence the send may leave before the read's answer is in the buffer that it sends.
TEST_F(RdmaRead, FencedSendCarriesWhatWasRead) {
  connect();
  constexpr std::uint32_t bytes = 10'000;
  for (std::uint32_t round = 0; round < 10; ++round) {
    a.clear(0, bytes);
    b.fill(0, bytes, round);
    b.receive(1, {b.piece(30'000, bytes)});
    a.post({read(2, {a.piece(0, bytes)}, b, 0),
            with_flags(send(3, {a.piece(0, bytes)}), IBV_SEND_SIGNALED | IBV_SEND_FENCE)});
    EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
    EXPECT_TRUE(holds_pattern(b, 30'000, bytes, round));
    const std::vector<ibv_wc> done = a.sent(2);
    EXPECT_TRUE(completed(done[0], 2, IBV_WC_RDMA_READ));
    EXPECT_TRUE(completed(done[1], 3, IBV_WC_SEND));
  }
}

TEST_F(RdmaRead, CompletesInTheOrderOfPostingAmongOtherOperations) {
  connect();
  constexpr std::uint32_t rounds = 8;
  for (std::uint32_t i = 0; i < rounds; ++i) b.receive(i, {b.piece(60'000, 100)});
  for (std::uint32_t i = 0; i < rounds; ++i) {
    a.post({read(3 * i, {a.piece(0, 4000)}, b, 0), write(3 * i + 1, {a.piece(8192, 2000)}, b, 8192),
            send(3 * i + 2, {a.piece(0, 100)})});
  }
  const std::vector<ibv_wc> done = a.sent(3 * rounds);
  for (std::uint32_t i = 0; i < rounds; ++i) {
    EXPECT_TRUE(completed(done[3 * i], 3 * i, IBV_WC_RDMA_READ));
    EXPECT_TRUE(completed(done[3 * i + 1], 3 * i + 1, IBV_WC_RDMA_WRITE));
    EXPECT_TRUE(completed(done[3 * i + 2], 3 * i + 2, IBV_WC_SEND));
  }
  EXPECT_EQ(b.received(rounds).size(), rounds);
}

}  // namespace
}  // namespace verbatim::conformance
