// COMPARE AND SWAP and FETCH AND ADD on a reliable connection.
#include <cerrno>

#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class Atomics : public ConformanceCase {
 protected:
  void SetUp() override {
    if (b.device.orig_attr.atomic_cap == IBV_ATOMIC_NONE) GTEST_SKIP() << "the device has no atomics";
    connect();
  }
};

TEST_F(Atomics, FetchAndAddReturnsTheOldValue) {
  b.set_word(64, 1000);
  a.post(fetch_and_add(1, a.piece(8, 8), b, 64, 42));

  const ibv_wc done = a.sent();
  EXPECT_TRUE(completed(done, 1, IBV_WC_FETCH_ADD));
  EXPECT_EQ(a.word(8), 1000u);
  EXPECT_EQ(b.word(64), 1042u);
}

TEST_F(Atomics, FetchAndAddWrapsAround) {
  b.set_word(0, ~std::uint64_t{0} - 1);
  a.post(fetch_and_add(1, a.piece(0, 8), b, 0, 3));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_FETCH_ADD));
  EXPECT_EQ(a.word(0), ~std::uint64_t{0} - 1);
  EXPECT_EQ(b.word(0), 1u);
}

TEST_F(Atomics, CompareAndSwapSwapsWhatIsEqual) {
  b.set_word(0, 0x1122334455667788);
  a.post(compare_and_swap(1, a.piece(0, 8), b, 0, 0x1122334455667788, 99));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_COMP_SWAP));
  EXPECT_EQ(a.word(0), 0x1122334455667788u);
  EXPECT_EQ(b.word(0), 99u);
}

TEST_F(Atomics, CompareAndSwapLeavesWhatDiffers) {
  b.set_word(0, 5);
  a.post(compare_and_swap(1, a.piece(0, 8), b, 0, 6, 99));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_COMP_SWAP));
  EXPECT_EQ(a.word(0), 5u);
  EXPECT_EQ(b.word(0), 5u);
}

TEST_F(Atomics, ManyAreExecutedOnceEachAndInOrder) {
  constexpr std::uint32_t count = 60;
  for (std::uint32_t i = 0; i < count; ++i) a.post(fetch_and_add(i, a.piece(8 * i, 8), b, 0, 1));
  const std::vector<ibv_wc> done = a.sent(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    EXPECT_TRUE(completed(done[i], i, IBV_WC_FETCH_ADD));
    EXPECT_EQ(a.word(8 * i), i);
  }
  EXPECT_EQ(b.word(0), count);
}

TEST_F(Atomics, TwoQpsAddToOneWord) {
  Side first_of_a = a;
  a.make_qp(a.qp_options());
  b.make_qp(b.qp_options());
  connect_qps();
  constexpr std::uint32_t count = 50;
  for (std::uint32_t i = 0; i < count; ++i) {
    first_of_a.post(fetch_and_add(i, a.piece(0, 8), b, 0, 1));
    a.post(fetch_and_add(i, a.piece(8, 8), b, 0, 1000));
  }
  for (const ibv_wc& done : a.sent(2 * count)) EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.word(0), count * 1001u);
}

// The specification has the responder refuse (volume 1, 9.7.4.1.4: NAK invalid request); a provider may see it earlier.
TEST_F(Atomics, MisalignedTargetIsAnError) {
  const Posted posted = a.endpoint->post_send(a.qp, {fetch_and_add(1, a.piece(0, 8), b, 4, 1)});
  if (posted.error != 0) {
    EXPECT_EQ(posted.error, EINVAL);
    EXPECT_EQ(posted.bad_index, 0);
  } else {
    EXPECT_TRUE(failed(a.sent(), 1, IBV_WC_REM_INV_REQ_ERR));
  }
  EXPECT_TRUE(holds_zeros(b, 0, 16));
}

// The answer has eight bytes. Refused at once or when it comes.
TEST_F(Atomics, PlaceForTheAnswerTooSmallIsAnError) {
  const Posted posted = a.endpoint->post_send(a.qp, {fetch_and_add(1, a.piece(0, 4), b, 0, 1)});
  if (posted.error != 0) {
    EXPECT_EQ(posted.error, EINVAL);
  } else {
    EXPECT_TRUE(failed(a.sent(), 1, IBV_WC_LOC_LEN_ERR));
  }
  EXPECT_TRUE(holds_zeros(a, 0, 16));
}

}  // namespace
}  // namespace verbatim::conformance
