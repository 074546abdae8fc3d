// Memory that can't be registered: refused at once, as pinning it would be, and never found out on the data path.
#include <sys/mman.h>

#include <cerrno>

#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

class Registration : public RcPair {
 protected:
  static constexpr std::size_t page = 4096;

  void* map(int protection) {
    void* address = mmap(nullptr, page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapped_.push_back(address);
    return address;
  }
  void expect_refused(void* address, std::size_t length, int access) {
    errno = 0;
    EXPECT_EQ(a.context->reg_mr(a.pd, address, length, access), nullptr);
    EXPECT_EQ(errno, EFAULT);
  }
  void TearDown() override {
    for (void* address : mapped_) munmap(address, page);
    RcPair::TearDown();
  }

 private:
  std::vector<void*> mapped_;
};

TEST_F(Registration, RangeThatWrapsAroundIsRefused) {
  expect_refused(reinterpret_cast<void*>(~std::uintptr_t{0} - page + 1), 2 * page, IBV_ACCESS_LOCAL_WRITE);
}

TEST_F(Registration, MemoryThatIsNotThereIsRefused) {
  void* hole = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(hole, page);
  expect_refused(hole, page, 0);
}

TEST_F(Registration, MemoryThatMayNotBeReadIsRefused) {
  expect_refused(map(PROT_NONE), page, 0);
}

TEST_F(Registration, MemoryThatMayNotBeWrittenIsRefusedForWritingOnly) {
  void* constant = map(PROT_READ);
  expect_refused(constant, page, IBV_ACCESS_LOCAL_WRITE);
  ibv_mr* mr = a.context->reg_mr(a.pd, constant, page, 0);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(a.context->dereg_mr(mr), 0);
}

TEST_F(Registration, NobodyAnswersToTheZeroGid) {
  ibv_ah_attr nowhere{};
  nowhere.is_global = 1;
  nowhere.port_num = 1;
  nowhere.grh.sgid_index = 1;
  errno = 0;
  EXPECT_EQ(a.context->create_ah(a.pd, nowhere), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace verbatim::soft::testing
