// Regions that are registered again: the keys stay, and from then on only what was granted last counts.
#include <cerrno>

#include "device/soft/verbs/soft_context.hpp"
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

constexpr int every_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class Reregistration : public RcPair {
 protected:
  // Of b's region, which a writes to.
  int change(int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
    return SoftContext::of(b.context->handle()).rereg_mr(b.mr, flags, pd, address, length, access);
  }
  int change_access(int access) { return change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, access); }
  int change_range(std::size_t offset, std::size_t length) {
    return change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, b.memory.data() + offset, length, 0);
  }
  ibv_wc_status write_to(std::size_t offset) {
    EXPECT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 64, b, offset), 0);
    return completion(a).status;
  }
};

TEST_F(Reregistration, KeysStay) {
  const std::uint32_t lkey = b.mr->lkey;
  const std::uint32_t rkey = b.mr->rkey;
  ASSERT_EQ(change_range(4096, 8192), 0);
  EXPECT_EQ(b.mr->lkey, lkey);
  EXPECT_EQ(b.mr->rkey, rkey);
  EXPECT_EQ(b.mr->addr, b.memory.data() + 4096);
  EXPECT_EQ(b.mr->length, 8192U);
}

TEST_F(Reregistration, AccessThatIsTakenBackIsRefused) {
  ASSERT_EQ(write_to(0), IBV_WC_SUCCESS);
  ASSERT_EQ(change_access(IBV_ACCESS_LOCAL_WRITE), 0);
  fill(a, 0, 64, 7);
  EXPECT_EQ(write_to(0), IBV_WC_REM_ACCESS_ERR);
  EXPECT_FALSE(same(a, 0, b, 0, 64));
}

TEST_F(Reregistration, AccessThatIsGivenIsThere) {
  ASSERT_EQ(change_access(IBV_ACCESS_LOCAL_WRITE), 0);
  ASSERT_EQ(change_access(every_access), 0);
  fill(a, 0, 64, 7);
  EXPECT_EQ(write_to(0), IBV_WC_SUCCESS);
  EXPECT_TRUE(same(a, 0, b, 0, 64));
}

TEST_F(Reregistration, NewRangeIsReachedUpToItsEnd) {
  ASSERT_EQ(change_range(4096, 128), 0);
  fill(a, 0, 64, 7);
  EXPECT_EQ(write_to(4096 + 64), IBV_WC_SUCCESS);
  EXPECT_TRUE(same(a, 0, b, 4096 + 64, 64));
  EXPECT_EQ(write_to(4096 + 65), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(Reregistration, OldRangeIsNotReached) {
  ASSERT_EQ(change_range(4096, 4096), 0);
  fill(a, 0, 64, 7);
  EXPECT_EQ(write_to(0), IBV_WC_REM_ACCESS_ERR);
  EXPECT_FALSE(same(a, 0, b, 0, 64));
}

TEST_F(Reregistration, ReceiveIntoTheOldRangeFails) {
  ASSERT_EQ(post_receive(b, 2, 0, 64), 0);
  ASSERT_EQ(change_range(4096, 4096), 0);
  ASSERT_EQ(post_send(a, 1, 0, 64), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_REM_OP_ERR);
  EXPECT_EQ(completion(b).status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(Reregistration, RegionBelongsToItsNewDomainOnly) {
  ibv_pd* other = b.context->alloc_pd();
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0), 0);
  EXPECT_EQ(b.mr->pd, other);
  EXPECT_EQ(b.context->dealloc_pd(other), EBUSY);
  EXPECT_EQ(write_to(0), IBV_WC_REM_ACCESS_ERR);

  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_PD, b.pd, nullptr, 0, 0), 0);
  EXPECT_EQ(b.context->dealloc_pd(other), 0);
  reconnect(settings);
  EXPECT_EQ(write_to(0), IBV_WC_SUCCESS);
}

TEST_F(Reregistration, WhatFailsChangesNothing) {
  EXPECT_EQ(change(0, nullptr, nullptr, 0, 0), EINVAL);
  EXPECT_EQ(change(IBV_REREG_MR_FLAGS_SUPPORTED + 1, nullptr, nullptr, 0, 0), EINVAL);
  EXPECT_EQ(change(IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0), EINVAL);
  EXPECT_EQ(change(IBV_REREG_MR_CHANGE_PD, a.pd, nullptr, 0, 0), EINVAL) << "another device's domain";
  EXPECT_EQ(change_range(0, 0), EINVAL);
  EXPECT_EQ(change_access(IBV_ACCESS_REMOTE_WRITE), EINVAL) << "remote writes without local ones";
  EXPECT_EQ(
      change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, reinterpret_cast<void*>(~std::uintptr_t{0} - 4095), 8192, 0),
      EFAULT);
  EXPECT_EQ(b.mr->addr, b.memory.data());
  EXPECT_EQ(b.mr->length, b.memory.size());
  EXPECT_EQ(write_to(b.memory.size() - 64), IBV_WC_SUCCESS);
}

TEST(ReregistrationLimits, PinnedBytesAreThoseOfTheNewRange) {
  Pair pair;
  pair.config_b.limits.max_pinned_bytes = pair.memory_bytes;
  pair.open();
  SoftContext& context = SoftContext::of(pair.b.context->handle());
  std::vector<std::byte> larger(pair.memory_bytes + 1);
  constexpr int moved = IBV_REREG_MR_CHANGE_TRANSLATION;
  EXPECT_EQ(context.rereg_mr(pair.b.mr, moved, nullptr, larger.data(), larger.size(), 0), ENOMEM);
  EXPECT_EQ(context.rereg_mr(pair.b.mr, moved, nullptr, larger.data(), larger.size() / 2, 0), 0);
  EXPECT_EQ(context.rereg_mr(pair.b.mr, moved, nullptr, larger.data(), larger.size() - 1, 0), 0);
}

}  // namespace
}  // namespace verbatim::soft::testing
