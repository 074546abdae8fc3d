// RDMA writes straight into a peer's memory, and how their permission is taken back.
#include "device/soft/shm/placement.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "device/soft/shm/copy.hpp"
#include "unit/soft_shm/support.hpp"

namespace verbatim::soft::shm {
namespace {

constexpr std::uint32_t rkey = 0x101;
constexpr std::size_t bytes = 10'000;

class PlacementTest : public ::testing::Test {
 protected:
  void SetUp() override {
    source_ = open_wire(config_in(directory_), gid(1));
    target_ = open_wire(config_in(directory_), gid(2));
    path_ = &source_->path_to(gid(1), gid(2));
    static_cast<void>(target_->receive(now()));
    memory_ = target_->allocate(bytes);
    target_->region_registered(region(rkey, memory_.address, bytes));
    target_->queue_pair_changed(queue_pair(0x22, 0x11));
  }
  bool place(const Packet& packet) {
    std::vector<std::byte> data(packet.rdma.length, std::byte{0xab});
    const Piece from = piece(data.data(), data.size());
    return source_->place(*path_, packet, std::span(&from, 1));
  }
  [[nodiscard]] Packet packet(std::size_t offset = 0, std::uint32_t length = 8) const {
    return write_packet(static_cast<std::byte*>(memory_.address) + offset, rkey, length);
  }
  [[nodiscard]] bool untouched() const {
    const auto* at = static_cast<const std::byte*>(memory_.address);
    return std::all_of(at, at + memory_.bytes, [](std::byte byte) { return byte == std::byte{0}; });
  }
  // The slot that the source has at the target, as a peer of its own making could use it.
  [[nodiscard]] PeerSlot& slot() {
    mapping_ = *Registry(directory_.path()).find(gid(2));
    return reinterpret_cast<Instance*>(mapping_.data())->slots[0];
  }

  TemporaryDirectory directory_;
  std::unique_ptr<ShmWire> source_;
  std::unique_ptr<ShmWire> target_;
  Path* path_ = nullptr;
  device::Memory memory_;
  Mapping mapping_;
};

TEST_F(PlacementTest, AWriteIsThereAtOnceAndNothingAroundIt) {
  for (const auto& [offset, length] : {std::pair{0U, 1U}, {8U, 8U}, {13U, 100U}, {4000U, 6000U}, {0U, 10'000U}}) {
    std::memset(memory_.address, 0, memory_.bytes);
    ASSERT_TRUE(place(packet(offset, length)));
    const auto* at = static_cast<const std::byte*>(memory_.address);
    for (std::size_t i = 0; i < memory_.bytes; ++i) {
      ASSERT_EQ(at[i] == std::byte{0xab}, i >= offset && i < offset + length) << i;
    }
  }
}

TEST_F(PlacementTest, WhatTheTablesDoNotAllowTouchesNothing) {
  EXPECT_FALSE(place(packet(bytes - 7, 8))) << "beyond the region, though within its pages";
  EXPECT_FALSE(place(packet(static_cast<std::size_t>(0) - 1, 8))) << "before the region";
  Packet huge = packet(1, 8);
  huge.rdma.length = 0;
  EXPECT_FALSE(place(huge)) << "nothing at all goes by packet";
  Packet stale = packet();
  stale.rdma.rkey = rkey + 1;
  EXPECT_FALSE(place(stale)) << "the key of another use of the index";
  stale.rdma.rkey = 0x201;
  EXPECT_FALSE(place(stale)) << "a key that was never given";
  stale.rdma.rkey = 0xffffff01;
  EXPECT_FALSE(place(stale)) << "a key beyond the table";
  Packet foreign = packet();
  foreign.header.source = 0x12;
  EXPECT_FALSE(place(foreign)) << "a queue pair that the target is not connected to";
  foreign = packet();
  foreign.header.destination_qpn = 0x23;
  EXPECT_FALSE(place(foreign)) << "a queue pair that does not exist";

  QueuePairView view = queue_pair(0x22, 0x11);
  view.receiving = false;
  target_->queue_pair_changed(view);
  EXPECT_FALSE(place(packet())) << "a queue pair that receives nothing";
  view = queue_pair(0x22, 0x11);
  view.access = IBV_ACCESS_REMOTE_READ;
  target_->queue_pair_changed(view);
  EXPECT_FALSE(place(packet())) << "a queue pair that takes no writes";
  view = queue_pair(0x22, 0x11);
  view.protection_domain = 2;
  target_->queue_pair_changed(view);
  EXPECT_FALSE(place(packet())) << "a region of another protection domain";
  target_->queue_pair_changed(queue_pair(0x22, 0x11));

  target_->region_registered(region(rkey, memory_.address, bytes, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_FALSE(place(packet())) << "a region that takes no remote writes";
  std::vector<std::byte> elsewhere(bytes);
  target_->region_registered(region(rkey, elsewhere.data(), bytes));
  EXPECT_FALSE(place(write_packet(elsewhere.data(), rkey, 8))) << "memory that can't be mapped";
  target_->region_registered(region(rkey, memory_.address, bytes));
  EXPECT_TRUE(untouched());
  EXPECT_TRUE(place(packet())) << "and the table is right again";
}

TEST_F(PlacementTest, NothingIsPlacedOnceTheRegionOrTheQueuePairIsGone) {
  ASSERT_TRUE(place(packet()));
  std::memset(memory_.address, 0, bytes);
  target_->queue_pair_gone(Qpn{0x22});
  EXPECT_FALSE(place(packet()));
  target_->queue_pair_changed(queue_pair(0x22, 0x11));
  target_->region_gone(rkey);
  EXPECT_FALSE(place(packet()));
  EXPECT_TRUE(untouched());
}

// A placer keeps what it was permitted last, and the key does not tell it that less is permitted now.
TEST_F(PlacementTest, OnlyWhatARegionWasRegisteredForLastIsPlaced) {
  ASSERT_TRUE(place(packet()));
  std::memset(memory_.address, 0, bytes);
  target_->region_gone(rkey);
  target_->region_registered(region(rkey, memory_.address, bytes, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_FALSE(place(packet())) << "access that was taken back";
  target_->region_gone(rkey);
  target_->region_registered(region(rkey, memory_.address, bytes / 2));
  EXPECT_FALSE(place(packet(bytes / 2))) << "behind the new end";
  EXPECT_TRUE(untouched());
  EXPECT_TRUE(place(packet(bytes / 2 - 8)));
}

TEST_F(PlacementTest, TakingBackWaitsForWhoIsStillCopying) {
  PeerSlot& busy = slot();
  const auto waits_for = [&](std::uint64_t placement, const std::function<void()>& take_back,
                             const std::function<bool()>& withdrawn) {
    std::atomic<bool> returned{false};
    busy.placement = placement;
    std::thread owner([&] {
      take_back();
      returned = true;
    });
    EXPECT_TRUE(eventually(withdrawn));
    for (int i = 0; i < 200; ++i) ::sched_yield();
    EXPECT_FALSE(returned);
    busy.placement = 0;
    owner.join();
  };
  const Instance& instance = *reinterpret_cast<const Instance*>(mapping_.data());
  waits_for(
      Placement::make(0x999, 0x22), [&] { target_->queue_pair_gone(Qpn{0x22}); },
      [&] { return !find_queue_pair(instance, Qpn{0x22}); });
  waits_for(
      Placement::make(rkey, 0x99), [&] { target_->region_gone(rkey); }, [&] { return !find_region(instance, rkey); });
  EXPECT_EQ(target_->counters().placements_unfinished, 0u);
}

TEST_F(PlacementTest, WhatConcernsOthersIsNotWaitedFor) {
  slot().placement = Placement::make(0x777, 0x77);
  target_->queue_pair_gone(Qpn{0x22});
  target_->region_gone(rkey);
  EXPECT_EQ(target_->counters().placements_unfinished, 0u);
}

class PlacingProcess : public PlacementTest {
 protected:
  // Another device, which announces a placement into our region and then does nothing more.
  void start() {
    child_ = std::make_unique<ChildProcess>([&] {
      const auto wire = open_wire(config_in(directory_), gid(3));
      static_cast<void>(wire->path_to(gid(3), gid(2)));
      const Mapping mapping = *Registry(directory_.path()).find(gid(2));
      reinterpret_cast<Instance*>(mapping.data())->slots[1].placement = Placement::make(rkey, 0x22);
      words_[0] = 1;
      ::pause();
      return 0;
    });
    ASSERT_TRUE(eventually([&] { return words_[0] == 1; }));
  }
  SharedWords words_;
  std::unique_ptr<ChildProcess> child_;
};

TEST_F(PlacingProcess, KilledInTheMiddleHoldsNobodyUp) {
  start();
  child_->kill();
  target_->region_gone(rkey);
  EXPECT_EQ(target_->counters().placements_unfinished, 0u);
}

TEST_F(PlacingProcess, StoppedInTheMiddleIsGivenUpAndItsMemoryIsNotHandedOutAgain) {
  start();
  ::kill(child_->pid(), SIGSTOP);
  target_->region_gone(rkey);
  EXPECT_EQ(target_->counters().placements_unfinished, 1u);
  target_->deallocate(memory_);
  const device::Memory other = target_->allocate(bytes);
  EXPECT_NE(other.address, memory_.address);
}

TEST_F(PlacementTest, AnotherProcessSeesAWriteByPollingItsMemory) {
  SharedWords words;
  ChildProcess poller([&] {
    const auto wire = open_wire(config_in(directory_), gid(3));
    const device::Memory memory = wire->allocate(4096);
    wire->region_registered(region(rkey, memory.address, 4096));
    wire->queue_pair_changed(queue_pair(0x22, 0x11));
    words[0] = reinterpret_cast<std::uintptr_t>(memory.address);
    std::atomic_ref<std::uint64_t> flag(*static_cast<std::uint64_t*>(memory.address));
    return eventually([&] { return flag.load() == 0x5a5a; }) ? 0 : 1;
  });
  ASSERT_TRUE(eventually([&] { return words[0] != 0; }));
  Path& path = source_->path_to(gid(1), gid(3));
  std::uint64_t value = 0x5a5a;
  const Piece from = piece(&value, sizeof value);
  EXPECT_TRUE(
      source_->place(path, write_packet(reinterpret_cast<void*>(words[0].load()), rkey, 8), std::span(&from, 1)));
  EXPECT_EQ(poller.wait(), 0);
}

TEST(CopyInOrder, CopiesEveryAlignmentAndSizeAndNothingMore) {
  std::vector<std::byte> from(400);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
  for (std::size_t source = 0; source < 17; ++source) {
    for (std::size_t target = 0; target < 17; ++target) {
      for (std::size_t size = 0; size < 150; ++size) {
        alignas(64) std::byte to[256]{};
        copy_in_order(to + target, from.data() + source, size);
        ASSERT_EQ(std::memcmp(to + target, from.data() + source, size), 0);
        for (std::size_t i = 0; i < sizeof to; ++i) {
          if (i < target || i >= target + size) {
            ASSERT_EQ(to[i], std::byte{0});
          }
        }
      }
    }
  }
}

TEST(CopyInOrder, WhoPollsSeesNoLaterByteWithoutTheEarlierOnes) {
  constexpr std::size_t words = 512;
  alignas(64) static std::uint64_t target[words];
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    std::vector<std::uint64_t> source(words);
    for (std::uint64_t round = 1; round <= 3000; ++round) {
      std::fill(source.begin(), source.end(), round);
      copy_in_order(reinterpret_cast<std::byte*>(target), reinterpret_cast<const std::byte*>(source.data()),
                    sizeof target);
    }
    stop = true;
  });
  while (!stop) {
    // From the end backwards: each word must be at least as new as the ones after it.
    std::uint64_t newest = 0;
    for (std::size_t i = words; i-- > 0;) {
      const std::uint64_t seen = std::atomic_ref<std::uint64_t>(target[i]).load(std::memory_order_acquire);
      if (seen < newest) ADD_FAILURE() << "word " << i << " is older than a later one";
      newest = std::max(newest, seen);
    }
  }
  writer.join();
}

TEST_F(PlacementTest, MemoryIsAlignedZeroedAndUsedAgain) {
  std::vector<device::Memory> held;
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t size : {1UL, 4096UL, 5000UL, 100'000UL, 2'000'000UL}) {
      held.push_back(source_->allocate(size));
      ASSERT_TRUE(held.back());
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(held.back().address) % 4096, 0u);
      ASSERT_EQ(held.back().bytes % 4096, 0u);
      ASSERT_GE(held.back().bytes, size);
      const auto* at = static_cast<const std::byte*>(held.back().address);
      ASSERT_TRUE(std::all_of(at, at + held.back().bytes, [](std::byte byte) { return byte == std::byte{0}; }));
      std::memset(held.back().address, 0xff, held.back().bytes);
    }
    for (const device::Memory& memory : held) source_->deallocate(memory);
    held.clear();
  }
  std::size_t segments = 0;
  for (const std::string& name : directory_.names()) segments += name.starts_with("segment-") ? 1 : 0;
  EXPECT_LE(segments, 2u) << "one of each device";
  source_->deallocate({.address = &segments, .bytes = 8});
  EXPECT_FALSE(source_->allocate(0));
}

}  // namespace
}  // namespace verbatim::soft::shm
