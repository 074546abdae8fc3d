// Registered memory as a kernel has it that pins pages: its limit, and what the device sees when mappings change. Runs
// inside the virtual machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "base/error.hpp"
#include "mem/registration_cache.hpp"
#include "unit/mem/child.hpp"
#include "vm/mem/rxe.hpp"

namespace verbatim::mem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t page_bytes = 4096;

TEST(MemlockLimitOfTheKernel, IsNamedWhenItRefuses) {
  Rig rig(open_rxe());
  const auto before = RegisteredRegion::allocate(rig.registrar, 48 * 1024, Access::receive, {});
  expect_in_child([&] {
    // The child's own memory is counted anew, so its device is its own too.
    const auto context = open_rxe();
    auto* const pd = context->alloc_pd();
    PinnedBytes pinned;
    const Registrar registrar{*context, pd, pinned};
    const rlimit limit{64 * 1024, 128 * 1024};
    constexpr uid_t nobody = 65534;
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || ::seteuid(nobody) != 0) return false;
    const auto first = RegisteredRegion::allocate(registrar, 48 * 1024, Access::receive, {});
    try {
      (void)RegisteredRegion::allocate(registrar, 32 * 1024, Access::receive, {});
      ADD_FAILURE() << "32 KiB more were registered";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::permission);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("RLIMIT_MEMLOCK allows: 64KiB"), HasSubstr("hard limit 128KiB"),
                                      HasSubstr("48KiB are used")));
    }
    return true;
  });
}

// What the kernel pins it must not need to write.
TEST(RegionsOnRxe, AreSentFromReadOnlyMemory) {
  Rig rig(open_rxe());
  static const char text[] = "constant";
  EXPECT_TRUE(RegisteredRegion::of(rig.registrar, const_cast<char*>(text), sizeof text, Access::source));
}

// A queue pair connected to itself, to see the memory that the device sees.
class Loopback {
 public:
  explicit Loopback(Rig& rig) : rig_(rig), cq_(rig.context->create_cq(8, nullptr, nullptr, 0)) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.cap = {4, 1, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    qp_ = rig.context->create_qp(rig.pd, init);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    std::vector<ibv_gid_entry> gids;
    EXPECT_EQ(rig.context->query_gid_table(gids), 0);
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = qp_->qp_num;
    attributes.max_dest_rd_atomic = 1;
    attributes.min_rnr_timer = 1;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    attributes.ah_attr.grh.dgid = gids.back().gid;
    attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gids.back().gid_index);
    attributes.ah_attr.grh.hop_limit = 64;
    modify(attributes, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 14;
    attributes.retry_cnt = 7;
    attributes.max_rd_atomic = 1;
    modify(attributes, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC);
  }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;
  ~Loopback() {
    rig_.context->destroy_qp(qp_);
    rig_.context->destroy_cq(cq_);
  }

  // The byte as the device reads it with this key.
  std::byte read(const std::byte* address, RKey key) {
    const auto target = RegisteredRegion::allocate(rig_.registrar, 1, Access::receive, {});
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(target.address()), 1, target.lkey().value};
    ibv_send_wr work{};
    work.sg_list = &piece;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_READ;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma = {reinterpret_cast<std::uintptr_t>(address), key.value};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(qp_, &work, &bad), 0);
    ibv_wc completion{};
    while (ibv_poll_cq(cq_, 1, &completion) == 0) ::sched_yield();
    EXPECT_EQ(completion.status, IBV_WC_SUCCESS) << ibv_wc_status_str(completion.status);
    return *target.address();
  }

 private:
  void modify(ibv_qp_attr& attributes, int mask) { EXPECT_EQ(rig_.context->modify_qp(qp_, attributes, mask), 0); }
  Rig& rig_;
  ibv_cq* cq_;
  ibv_qp* qp_;
};

// The device keeps the pages that it was given. A registration that outlived its mapping would show old bytes for ever.
TEST(RegistrationCacheOnRxe, ShowsTheDeviceTheMemoryThatIsThereNow) {
  Rig rig(open_rxe());
  Loopback loopback(rig);
  RegistrationCache cache(rig.registrar, std::size_t{1} << 30);
  ASSERT_EQ(cache.why_off(), nullptr);
  const auto map = [](void* where, int flags) {
    void* const page = ::mmap(where, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    EXPECT_NE(page, MAP_FAILED);
    return static_cast<std::byte*>(page);
  };
  std::byte* const page = map(nullptr, 0);
  const auto seen = [&] {
    return loopback.read(page, cache.find_or_register(page, page_bytes, Access::shared).rkey());
  };
  *page = std::byte{1};
  EXPECT_EQ(seen(), std::byte{1});
  *page = std::byte{2};
  EXPECT_EQ(seen(), std::byte{2});
  EXPECT_EQ(cache.statistics().hits, 1u);

  // What is guarded against does happen: with the old key the device sees the old page.
  const auto old_lease = cache.find_or_register(page, page_bytes, Access::shared);
  map(page, MAP_FIXED);
  *page = std::byte{3};
  EXPECT_EQ(loopback.read(page, old_lease.rkey()), std::byte{2});
  EXPECT_EQ(seen(), std::byte{3});

  ASSERT_EQ(::madvise(page, page_bytes, MADV_DONTNEED), 0);
  *page = std::byte{4};
  EXPECT_EQ(seen(), std::byte{4});
  EXPECT_EQ(cache.statistics().died, 2u);
  ::munmap(page, page_bytes);
}

}  // namespace
}  // namespace verbatim::mem
