// Reliable connections on a network that does no harm: what arrives, and what is said about it.
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

class Reliable : public RcPair {};

TEST_F(Reliable, SendArrivesAndIsAcknowledged) {
  fill(a, 0, 5000, 7);
  ASSERT_EQ(post_receive(b, 1, 0, 8192), 0);
  ASSERT_EQ(post_send(a, 2, 0, 5000), 0);
  const ibv_wc received = completion(b);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.wr_id, 1U);
  EXPECT_EQ(received.byte_len, 5000U);
  EXPECT_TRUE(same(a, 0, b, 0, 5000));
  const ibv_wc sent = completion(a);
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent.wr_id, 2U);
}

TEST_F(Reliable, WriteReadAndAtomics) {
  fill(a, 0, 100000, 3);
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 100000, b, 1000), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(same(a, 0, b, 1000, 100000));
  ASSERT_EQ(post_rdma(a, 2, IBV_WR_RDMA_READ, 200000, 100000, b, 1000), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(same(a, 200000, b, 1000, 100000));
  const std::uint64_t old_value = 41;
  std::memcpy(b.memory.data(), &old_value, 8);
  ASSERT_EQ(post(a, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8,
                 [&](ibv_send_wr& wr) {
                   wr.wr.atomic = {b.address(), 1, 0, b.mr->rkey};
                 }),
            0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(a.memory.data(), &old_value, 8), 0);
  EXPECT_EQ(static_cast<unsigned>(b.memory[0]), 42U);
}

}  // namespace
}  // namespace verbatim::soft::testing
