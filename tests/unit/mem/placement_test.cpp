#include "mem/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numa.h>
#include <numaif.h>

#include <algorithm>

#include "base/error.hpp"
#include "device/sysfs.hpp"
#include "unit/mem/captured_log.hpp"
#include "unit/mem/child.hpp"
#include "unit/mem/rig.hpp"

namespace verbatim::mem {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Where the soft device's memory can't have any, which is most hosts' setting.
bool files_have_huge_pages() {
  const auto setting = device::read_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled").value_or("[never]");
  return setting.find("[never]") == std::string::npos && setting.find("[deny]") == std::string::npos;
}

TEST(MemoryPlacementTest, TakesTheDevicesNodeKnownOrNot) {
  EXPECT_EQ(place_memory({3, {}}, -1, Switch::off).numa_node, 3);
  EXPECT_EQ(place_memory({}, -1, Switch::off).numa_node, std::nullopt);
}

TEST(MemoryPlacementTest, TakesANamedNodeAndRefusesOneThatIsNotThere) {
  EXPECT_EQ(place_memory({3, {}}, 0, Switch::off).numa_node, 0);
  for (const int node : {-2, 1000}) {
    try {
      (void)place_memory({}, node, Switch::off);
      ADD_FAILURE() << node;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr("memory.numa_node is " + std::to_string(node)));
    }
  }
}

TEST(PlacedMemory, LeavesTheThreadsPolicyAlone) {
  if (numa_available() < 0) GTEST_SKIP() << "this kernel has no memory policies";
  Rig rig;
  const auto memory = allocate_placed(*rig.context, 100, {0, Switch::off});
  ASSERT_TRUE(memory);
  int mode = -1;
  ASSERT_EQ(get_mempolicy(&mode, nullptr, 0, nullptr, 0), 0);
  EXPECT_EQ(mode, MPOL_DEFAULT);
  rig.context->release(memory);
}

TEST(PlacedMemory, IsBoundToTheNode) {
  if (numa_available() < 0) GTEST_SKIP() << "this kernel has no memory policies";
  soft::SimNetwork network;
  Rig on_ordinary_memory(soft::open_sim(network));
  Rig on_mappable_memory;
  for (Rig* rig : {&on_ordinary_memory, &on_mappable_memory}) {
    const auto memory = allocate_placed(*rig->context, 100, {0, Switch::off});
    ASSERT_TRUE(memory);
    int mode = -1;
    ASSERT_EQ(get_mempolicy(&mode, nullptr, 0, memory.address, MPOL_F_ADDR), 0);
    EXPECT_TRUE(mode == MPOL_BIND || mode == MPOL_PREFERRED) << mode;
    rig->context->release(memory);
  }
}

// A node that this host hasn't got stands for every refusal of the kernel.
TEST(PlacedMemory, ComesFromElsewhereWhereTheNodeIsRefused) {
  expect_in_child([] {
    const CapturedLog said;
    Rig rig;
    for (int i = 0; i < 3; ++i) {
      const auto memory = allocate_placed(*rig.context, 100, {63, Switch::off});
      EXPECT_TRUE(memory);
      std::fill_n(static_cast<std::byte*>(memory.address), memory.bytes, std::byte{1});
      rig.context->release(memory);
    }
    EXPECT_EQ(said.lines(), numa_available() < 0 ? 0u : 1u) << said.text();
    return true;
  });
}

TEST(HugePagesOfMemory, FallBackToNormalOnesWithOneNotice) {
  for (const auto& [wanted, level] : {std::pair{Switch::automatic, "info"}, std::pair{Switch::on, "warn"}}) {
    expect_in_child([wanted = wanted, level = level] {
      const CapturedLog said;
      Rig rig;
      for (int i = 0; i < 3; ++i) {
        const auto memory = allocate_placed(*rig.context, huge_page_bytes, {std::nullopt, wanted});
        EXPECT_TRUE(memory);
        std::fill_n(static_cast<std::byte*>(memory.address), memory.bytes, std::byte{1});
        rig.context->release(memory);
      }
      EXPECT_EQ(said.lines(), files_have_huge_pages() ? 0u : 1u);
      EXPECT_TRUE(said.text().empty() || said.text().find(level) != std::string::npos) << said.text();
      return true;
    });
  }
}

TEST(HugePagesOfMemory, AreNotMissedInSmallMemoryNorWhereTheyAreOff) {
  expect_in_child([] {
    const CapturedLog said;
    Rig rig;
    rig.context->release(allocate_placed(*rig.context, 4096, {std::nullopt, Switch::on}));
    rig.context->release(allocate_placed(*rig.context, huge_page_bytes, {std::nullopt, Switch::off}));
    EXPECT_EQ(said.text(), "");
    return true;
  });
}

TEST(OrdinaryMemory, BeginsAtAHugePageIfItIsAsLarge) {
  soft::SimNetwork network;
  Rig rig(soft::open_sim(network));
  for (const std::size_t bytes : {huge_page_bytes, 3 * huge_page_bytes + 1}) {
    const auto memory = allocate_placed(*rig.context, bytes, {std::nullopt, Switch::automatic});
    ASSERT_TRUE(memory);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.address) % huge_page_bytes, 0u);
    EXPECT_EQ(memory.bytes, (bytes + 4095) / 4096 * 4096);
    std::fill_n(static_cast<std::byte*>(memory.address), memory.bytes, std::byte{1});
    rig.context->release(memory);
  }
}

}  // namespace
}  // namespace verbatim::mem
