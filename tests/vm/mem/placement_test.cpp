// Where memory and threads of a worker are, as the kernel of a machine with two NUMA nodes sees it: one processor in
// each, the device near neither. And what that kernel says when locked memory is used up. Runs inside the virtual
// machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numaif.h>

#include <memory>
#include <thread>
#include <vector>

#include "mem/cores.hpp"
#include "mem/region.hpp"
#include "mem/topology.hpp"
#include "vm/mem/rxe.hpp"

namespace verbatim::mem {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t region_bytes = 600 * std::size_t{8192};  // more than a huge page

// The node of each page, from the kernel; negative: an errno value.
std::vector<int> nodes_of(const RegisteredRegion& region) {
  std::vector<void*> pages;
  for (std::size_t offset = 0; offset < region.bytes(); offset += page_bytes)
    pages.push_back(region.address() + offset);
  std::vector<int> nodes(pages.size(), -1);
  EXPECT_EQ(move_pages(0, pages.size(), pages.data(), nullptr, nodes.data(), 0), 0);
  return nodes;
}

class OnTwoNodes : public ::testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<Rig> open() {
    return GetParam() == std::string_view("rxe") ? std::make_unique<Rig>(open_rxe()) : std::make_unique<Rig>();
  }
};

TEST_P(OnTwoNodes, RegionsLieOnTheNodeThatIsNamed) {
  ASSERT_EQ(read_numa_nodes().size(), 2u);
  const auto rig = open();
  for (const int here : {0, 1}) {
    std::thread([&] {
      pin_this_thread(here);
      for (const auto huge_pages : {Switch::off, Switch::automatic, Switch::on}) {
        for (const int node : {0, 1}) {
          const auto region = RegisteredRegion::allocate(rig->registrar, region_bytes, Access::receive,
                                                         place_memory({}, node, huge_pages));
          EXPECT_THAT(nodes_of(region), Each(node)) << "made on node " << here;
        }
      }
    }).join();
  }
}

TEST_P(OnTwoNodes, RegionsLieOnTheDevicesNode) {
  const auto rig = open();
  std::thread([&] {
    pin_this_thread(0);
    const auto region = RegisteredRegion::allocate(rig->registrar, region_bytes, Access::receive,
                                                   place_memory({1, {1}}, -1, Switch::automatic));
    EXPECT_THAT(nodes_of(region), Each(1));
  }).join();
}

// Memory that was somewhere else before: the soft device cuts files whose pages are there from the start.
TEST_P(OnTwoNodes, PagesThatAreThereAlreadyMove) {
  const auto rig = open();
  std::thread([&] {
    pin_this_thread(0);
    const auto elsewhere = RegisteredRegion::allocate(rig->registrar, page_bytes, Access::receive, {0, Switch::off});
    const auto region = RegisteredRegion::allocate(rig->registrar, 4 * page_bytes, Access::receive, {1, Switch::off});
    EXPECT_THAT(nodes_of(elsewhere), Each(0));
    EXPECT_THAT(nodes_of(region), Each(1));
  }).join();
}

INSTANTIATE_TEST_SUITE_P(Devices, OnTwoNodes, ::testing::Values("rxe", "soft"),
                         [](const auto& device) { return std::string(device.param); });

TEST(CoresOfTwoNodes, AreThoseOfTheDevicesNode) {
  EXPECT_THAT(choose_cores({1, {1}}), ElementsAre(1));
  EXPECT_THAT(choose_cores({}), ElementsAre(0, 1));
}

}  // namespace
}  // namespace verbatim::mem
