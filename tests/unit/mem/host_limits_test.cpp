#include "mem/host_limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "unit/device/fake_sysfs.hpp"

namespace verbatim::mem {
namespace {

using device::FakeSysfs;
using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

TEST(HugePages, AreListedBySize) {
  const FakeSysfs sysfs;
  sysfs.write("kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "1\n");
  sysfs.write("kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "0\n");
  sysfs.write("kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64\n");
  sysfs.write("kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "60\n");
  sysfs.write("kernel/mm/hugepages/strange/nr_hugepages", "64\n");
  sysfs.write("kernel/mm/hugepages/strange/free_hugepages", "64\n");
  EXPECT_THAT(read_huge_pages(sysfs.root()), ElementsAre(FieldsAre(2u << 20, 64u, 60u), FieldsAre(1u << 30, 1u, 0u)));
}

TEST(HugePages, AreNoneWithoutFiles) {
  EXPECT_THAT(read_huge_pages(FakeSysfs().root()), IsEmpty());
}

TEST(PtraceScopeFile, IsReadAndOpenWhereThereIsNone) {
  const FakeSysfs procfs;
  EXPECT_EQ(read_ptrace_scope(procfs.root()), PtraceScope::same_user);
  procfs.write("sys/kernel/yama/ptrace_scope", "1\n");
  EXPECT_EQ(read_ptrace_scope(procfs.root()), PtraceScope::descendants);
  procfs.write("sys/kernel/yama/ptrace_scope", "9\n");
  EXPECT_EQ(read_ptrace_scope(procfs.root()), PtraceScope::nobody);
}

TEST(HostLimitsTest, FollowTheLimitOfTheProcess) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit lower{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &lower), 0);
  const auto limits = read_host_limits();
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
  EXPECT_EQ(limits.memlock_bytes, 4096u);
  EXPECT_EQ(limits.memlock_max_bytes.value_or(RLIM_INFINITY), before.rlim_max);
}

}  // namespace
}  // namespace verbatim::mem
