// Memory windows of type 1 and 2, and the invalidation of keys.
#include <cerrno>

#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class MemoryWindows : public ConformanceCase {
 protected:
  // The window is b's, bound on b's QP over bytes [4096, 8192) of b's region; a uses it. Whether the device has such.
  bool make_window(ibv_mw_type type) {
    const MadeMw made = b.endpoint->alloc_mw(b.pd, type);
    if (made.error == EOPNOTSUPP || made.error == ENOSYS) return false;
    EXPECT_EQ(made.error, 0);
    window = made.mw;
    window_key = made.rkey;
    for (Side* side : {&a, &b}) side->make_qp(side->qp_options());
    a.make_region(16'384);
    b.make_region(16'384, every_access | IBV_ACCESS_MW_BIND);
    Route route;
    route.access = every_access | IBV_ACCESS_MW_BIND;
    connect_qps(route);
    return true;
  }

  SendRequest bind(std::uint64_t id, unsigned access) {
    SendRequest request = send(id, {});
    request.opcode = IBV_WR_BIND_MW;
    request.mw = window;
    request.bind_mr = b.mr;
    request.bind_address = b.at(4096);
    request.bind_length = 4096;
    request.bind_access = access;
    window_key = ibv_inc_rkey(window_key);
    request.rkey = window_key;
    return request;
  }

  SendRequest through_window(SendRequest request) {
    request.rkey = window_key;
    return request;
  }

  Mw window;
  std::uint32_t window_key = 0;
};

TEST_F(MemoryWindows, Type1GrantsWhatItIsBoundTo) {
  if (!make_window(IBV_MW_TYPE_1)) GTEST_SKIP() << "the device has no memory windows of type 1";
  const BindRequest request{
      .id = 1, .mr = b.mr, .address = b.at(4096), .length = 4096, .access = IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(b.endpoint->bind_mw(b.qp, window, request), 0);
  EXPECT_TRUE(completed(b.sent(), 1, IBV_WC_BIND_MW));
  window_key = b.endpoint->mw_rkey(window);

  a.fill(0, 100, 1);
  a.post(through_window(write(2, {a.piece(0, 100)}, b, 5000)));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(holds_pattern(b, 5000, 100, 1));
  a.post(through_window(read(3, {a.piece(0, 100)}, b, 5000)));
  EXPECT_TRUE(failed(a.sent(), 3, IBV_WC_REM_ACCESS_ERR));
}

TEST_F(MemoryWindows, Type2GrantsWhatItIsBoundTo) {
  if (!make_window(IBV_MW_TYPE_2)) GTEST_SKIP() << "the device has no memory windows of type 2";
  b.post(bind(1, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
  EXPECT_TRUE(completed(b.sent(), 1, IBV_WC_BIND_MW));

  a.fill(0, 100, 1);
  a.post(through_window(write(2, {a.piece(0, 100)}, b, 5000)));
  a.post(through_window(read(3, {a.piece(1000, 100)}, b, 5000)));
  const std::vector<ibv_wc> done = a.sent(2);
  EXPECT_TRUE(completed(done[0], 2, IBV_WC_RDMA_WRITE));
  EXPECT_TRUE(completed(done[1], 3, IBV_WC_RDMA_READ));
  EXPECT_TRUE(holds_pattern(a, 1000, 100, 1));
}

TEST_F(MemoryWindows, HaveBoundsOfTheirOwn) {
  SKIP_WHERE_IT_DEVIATES(b, Deviation::window_bounds_are_ignored);
  if (!make_window(IBV_MW_TYPE_2)) GTEST_SKIP() << "the device has no memory windows of type 2";
  b.post(bind(1, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_TRUE(completed(b.sent(), 1, IBV_WC_BIND_MW));
  a.fill(0, 100, 1);
  a.post(through_window(write(2, {a.piece(0, 100)}, b, 8192 - 99)));  // in the region, but beyond the window
  EXPECT_TRUE(failed(a.sent(), 2, IBV_WC_REM_ACCESS_ERR));
  EXPECT_TRUE(holds_zeros(b, 8000, 400));
}

TEST_F(MemoryWindows, UnboundGrantsNothing) {
  if (!make_window(IBV_MW_TYPE_2)) GTEST_SKIP() << "the device has no memory windows of type 2";
  a.post(through_window(write(1, {a.piece(0, 100)}, b, 5000)));
  EXPECT_TRUE(failed(a.sent(), 1, IBV_WC_REM_ACCESS_ERR));
}

TEST_F(MemoryWindows, LocalInvalidateTakesTheGrantBack) {
  if (!make_window(IBV_MW_TYPE_2)) GTEST_SKIP() << "the device has no memory windows of type 2";
  b.post(bind(1, IBV_ACCESS_REMOTE_WRITE));
  SendRequest invalidate = send(2, {});
  invalidate.opcode = IBV_WR_LOCAL_INV;
  invalidate.invalidate_rkey = window_key;
  b.post(invalidate);
  const std::vector<ibv_wc> done = b.sent(2);
  EXPECT_TRUE(completed(done[0], 1, IBV_WC_BIND_MW));
  EXPECT_TRUE(completed(done[1], 2, IBV_WC_LOCAL_INV));
  a.post(through_window(write(3, {a.piece(0, 100)}, b, 5000)));
  EXPECT_TRUE(failed(a.sent(), 3, IBV_WC_REM_ACCESS_ERR));
}

TEST_F(MemoryWindows, PeersSendTakesTheGrantBack) {
  if (!make_window(IBV_MW_TYPE_2)) GTEST_SKIP() << "the device has no memory windows of type 2";
  b.post(bind(1, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_TRUE(completed(b.sent(), 1, IBV_WC_BIND_MW));
  b.receive(2, {b.piece(0, 64)});
  SendRequest last = send(3, {a.piece(0, 64)});
  last.opcode = IBV_WR_SEND_WITH_INV;
  last.invalidate_rkey = window_key;
  a.post(last);
  EXPECT_TRUE(completed(a.sent(), 3, IBV_WC_SEND));
  const ibv_wc received = b.received();
  EXPECT_TRUE(completed(received, 2, IBV_WC_RECV));
  if (!b.deviates(Deviation::invalidation_is_not_flagged)) {
    EXPECT_EQ(received.wc_flags & IBV_WC_WITH_INV, static_cast<unsigned>(IBV_WC_WITH_INV));
  }
  EXPECT_EQ(received.invalidated_rkey, window_key);
  a.post(through_window(write(4, {a.piece(0, 100)}, b, 5000)));
  EXPECT_TRUE(failed(a.sent(), 4, IBV_WC_REM_ACCESS_ERR));
}

}  // namespace
}  // namespace verbatim::conformance
