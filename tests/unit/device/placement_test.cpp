#include "device/placement.hpp"

#include <gtest/gtest.h>

#include "unit/device/fake_sysfs.hpp"

namespace verbatim::device {
namespace {

class PlacementTest : public ::testing::Test {
 protected:
  PlacementTest() { sysfs.write("devices/system/node/node1/cpulist", "2-3,6\n"); }
  Placement placement_if_node_is(const std::string& text) const {
    sysfs.write("class/infiniband/mlx5_0/device/numa_node", text);
    return find_placement("mlx5_0", sysfs.root());
  }
  FakeSysfs sysfs;
};

TEST_F(PlacementTest, IsTheNodeAndItsProcessors) {
  const auto placement = placement_if_node_is("1\n");
  EXPECT_EQ(placement.numa_node, 1);
  EXPECT_EQ(placement.cpus, (std::vector<int>{2, 3, 6}));
}

TEST_F(PlacementTest, IsUnknownWhereTheKernelSaysNothingUseful) {
  // 7 is a node that doesn't exist.
  for (const auto* text : {"-1\n", "7\n", "\n", "", "abc\n", "1x\n", "99999999999999999999\n"}) {
    const auto placement = placement_if_node_is(text);
    EXPECT_EQ(placement.numa_node, std::nullopt) << text;
    EXPECT_TRUE(placement.cpus.empty()) << text;
  }
}

TEST_F(PlacementTest, IsUnknownWithoutFiles) {
  EXPECT_EQ(find_placement("mlx5_0", sysfs.root()).numa_node, std::nullopt);
  EXPECT_EQ(find_placement("mlx5_0", FakeSysfs().root()).numa_node, std::nullopt);
}

TEST_F(PlacementTest, HasNoProcessorsOnANodeOfMemoryOnly) {
  sysfs.write("devices/system/node/node2/cpulist", "\n");
  const auto placement = placement_if_node_is("2\n");
  EXPECT_EQ(placement.numa_node, 2);
  EXPECT_TRUE(placement.cpus.empty());
}

}  // namespace
}  // namespace verbatim::device
