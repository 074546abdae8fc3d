#include "mem/topology.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace verbatim::mem {
namespace {

TEST(Topology, HasANodeWithProcessorsAndMemory) {
  std::size_t cpus = 0;
  std::uint64_t memory = 0;
  for (const auto& node : read_numa_nodes()) {
    cpus += node.cpus.size();
    memory += node.memory_bytes;
    EXPECT_LE(node.cores, node.cpus.size());
  }
  EXPECT_GE(cpus, 1u);
  EXPECT_GT(memory, 0u);
}

TEST(Topology, AllowsWhatTheThreadMayRunOn) {
  std::thread([] {
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    int only = 0;
    while (!CPU_ISSET(only, &mask)) ++only;
    CPU_ZERO(&mask);
    CPU_SET(only, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    std::vector<int> allowed;
    for (const auto& node : read_numa_nodes()) {
      allowed.insert(allowed.end(), node.allowed_cpus.begin(), node.allowed_cpus.end());
    }
    EXPECT_EQ(allowed, std::vector<int>{only});
  }).join();
}

TEST(CpuList, IsWrittenInRuns) {
  EXPECT_EQ(format_cpu_list({}), "");
  EXPECT_EQ(format_cpu_list({3}), "3");
  EXPECT_EQ(format_cpu_list({0, 1, 2, 4, 6, 7}), "0-2,4,6-7");
}

}  // namespace
}  // namespace verbatim::mem
