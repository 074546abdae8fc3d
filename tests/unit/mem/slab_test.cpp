#include "mem/slab.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "unit/mem/rig.hpp"

namespace verbatim::mem {
namespace {

const MemoryPlacement anywhere;

TEST(SlabTest, RoundsSlotsToLinesAndKnowsWhereTheyAre) {
  Rig rig;
  const Slab slab(rig.registrar, 100, 33, Access::receive, anywhere);
  EXPECT_EQ(slab.slot_bytes(), 128u);
  EXPECT_EQ(slab.slots(), 33u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab.address(0)) % 4096, 0u);
  EXPECT_EQ(slab.region().bytes() % 4096, 0u);
  for (Slab::Index i = 0; i < slab.slots(); ++i) {
    EXPECT_EQ(slab.address(i), slab.address(0) + 128 * i);
    EXPECT_EQ(slab.index_of(slab.address(i)), i);
    EXPECT_EQ(slab.index_of(slab.address(i) + 127), i);
  }
  EXPECT_TRUE(slab.contains(slab.address(32) + 127));
  EXPECT_FALSE(slab.contains(slab.address(32) + 128));
  EXPECT_FALSE(slab.contains(slab.address(0) - 1));
  EXPECT_NE(slab.lkey(), LKey{});
}

TEST(SlabTest, GivesEachSlotOnceAndTheLastOneFirst) {
  Rig rig;
  Slab slab(rig.registrar, 64, 8, Access::receive, anywhere);
  std::set<Slab::Index> taken;
  while (const auto index = slab.take()) EXPECT_TRUE(taken.insert(*index).second);
  EXPECT_EQ(taken.size(), 8u);
  EXPECT_EQ(slab.available(), 0u);
  slab.give_back(5);
  slab.give_back(2);
  EXPECT_EQ(slab.available(), 2u);
  EXPECT_EQ(slab.take(), 2u);
  EXPECT_EQ(slab.take(), 5u);
  EXPECT_EQ(slab.take(), std::nullopt);
}

TEST(SlabTest, IsOneRegistrationAndNoneWhenItIsGone) {
  Rig rig;
  {
    const Slab slab(rig.registrar, 4096, 16, Access::receive, anywhere);
    EXPECT_EQ(rig.pinned.value(), 16u * 4096);
  }
  EXPECT_EQ(rig.pinned.value(), 0u);
}

TEST(SlabTest, RefusesWhatMakesNone) {
  Rig rig;
  for (const auto& [bytes, slots] :
       {std::pair<std::size_t, Slab::Index>{0, 1}, {1, 0}, {SIZE_MAX, 1}, {SIZE_MAX / 4, 16}}) {
    try {
      const Slab slab(rig.registrar, bytes, slots, Access::receive, anywhere);
      ADD_FAILURE() << bytes << " " << slots;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

// Nothing of the heap lies on registered pages, so a child that has none of them, or copies, still runs; and what the
// parent writes while children come and go is what the device reads.
TEST(SlabTest, SurvivesForksWithWritesInBetween) {
  constexpr int forks = 100;
  constexpr std::size_t bytes = 4096;
  soft::SimNetwork network;
  Rig on_ordinary_memory(soft::open_sim(network));
  Rig on_mappable_memory;
  for (Rig* rig : {&on_ordinary_memory, &on_mappable_memory}) {
    Slab slab(rig->registrar, bytes, 4, Access::receive, anywhere);
    for (int round = 0; round < forks; ++round) {
      const auto slot = slab.take();
      ASSERT_TRUE(slot);
      std::memset(slab.address(*slot), round, bytes);
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        std::vector<std::unique_ptr<char[]>> blocks;
        for (int i = 0; i < 100; ++i) blocks.push_back(std::make_unique<char[]>(8192));
        if (round % 2 == 0) ::execl("/bin/true", "true", nullptr);
        ::_exit(round % 2 == 0 ? 98 : 0);
      }
      std::memset(slab.address(*slot), round + 1, bytes / 2);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0) << "fork " << round;
      const std::byte* slot_bytes = slab.address(*slot);
      for (std::size_t i = 0; i < bytes; ++i) {
        ASSERT_EQ(slot_bytes[i], static_cast<std::byte>(i < bytes / 2 ? round + 1 : round)) << "fork " << round;
      }
      slab.give_back(*slot);
    }
  }
}

}  // namespace
}  // namespace verbatim::mem
