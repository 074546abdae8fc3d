#include "mem/region.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "unit/mem/child.hpp"
#include "unit/mem/rig.hpp"

namespace verbatim::mem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t page_bytes = 4096;

// The sentence of the error that `register_memory` must throw, checked for its code.
template <typename Function>
std::string refusal(ErrorCode code, Function register_memory) {
  try {
    (void)register_memory();
    ADD_FAILURE() << "was not refused";
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
}

// As an ordinary user has it: the kernel holds nobody with CAP_IPC_LOCK to the limit.
bool give_up_exemption() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  return ::syscall(SYS_capset, &header, data) == 0;
}

bool limit_locked_memory(rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  return ::setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
}

TEST(RegisteredRegionTest, OfTheCallersMemoryIsExactlyThat) {
  Rig rig;
  std::vector<std::byte> buffer(10000);
  {
    const auto region = RegisteredRegion::of(rig.registrar, buffer.data() + 3, 5000, Access::shared);
    EXPECT_EQ(region.address(), buffer.data() + 3);
    EXPECT_EQ(region.bytes(), 5000u);
    EXPECT_TRUE(region);
    EXPECT_NE(region.lkey(), LKey{});
    EXPECT_NE(region.rkey(), RKey{});
    EXPECT_EQ(rig.pinned.value(), 5000u);
  }
  EXPECT_EQ(rig.pinned.value(), 0u);
}

TEST(RegisteredRegionTest, OfItsOwnIsWholeZeroedPages) {
  Rig rig;
  const auto region =
      RegisteredRegion::allocate(rig.registrar, page_bytes + 1, Access::receive, {std::nullopt, Switch::automatic});
  EXPECT_EQ(region.bytes(), 2 * page_bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region.address()) % page_bytes, 0u);
  EXPECT_TRUE(std::all_of(region.address(), region.address() + region.bytes(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ(rig.pinned.value(), 2 * page_bytes);
}

TEST(RegisteredRegionTest, IsCountedOnceWhenMoved) {
  Rig rig;
  std::vector<std::byte> buffer(100);
  auto first = RegisteredRegion::of(rig.registrar, buffer.data(), 100, Access::source);
  const auto key = first.lkey();
  RegisteredRegion second(std::move(first));
  EXPECT_EQ(second.lkey(), key);
  EXPECT_EQ(rig.pinned.value(), 100u);
  second = RegisteredRegion();
  EXPECT_EQ(rig.pinned.value(), 0u);
}

TEST(RegisteredRegionTest, OfNoBytesHasNoKeys) {
  Rig rig;
  const auto region = RegisteredRegion::of(rig.registrar, nullptr, 0, Access::shared);
  EXPECT_FALSE(region);
  EXPECT_EQ(region.bytes(), 0u);
  EXPECT_EQ(region.lkey(), LKey{});
}

TEST(RegisteredRegionTest, SendsFromReadOnlyMemory) {
  Rig rig;
  void* page = ::mmap(nullptr, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_TRUE(RegisteredRegion::of(rig.registrar, page, page_bytes, Access::source));
  EXPECT_THAT(refusal(ErrorCode::invalid_argument,
                      [&] { return RegisteredRegion::of(rig.registrar, page, page_bytes, Access::receive); }),
              HasSubstr("writable"));
  ::munmap(page, page_bytes);
  EXPECT_THAT(refusal(ErrorCode::invalid_argument,
                      [&] { return RegisteredRegion::of(rig.registrar, page, page_bytes, Access::source); }),
              AllOf(HasSubstr("4KiB at 0x"), HasSubstr("mapped and readable")));
  EXPECT_EQ(rig.pinned.value(), 0u);
}

TEST(MemlockLimit, IsNamedWithItsValuesAndWhatToDo) {
  expect_in_child([] {
    soft::DeviceConfig config = shm_config();
    config.limits.max_pinned_bytes = 64 * 1024;
    Rig rig(config);
    if (!limit_locked_memory(64 * 1024, 128 * 1024) || !give_up_exemption()) return false;
    const MemoryPlacement anywhere;
    const auto first = RegisteredRegion::allocate(rig.registrar, 48 * 1024, Access::receive, anywhere);
    const auto sentence = refusal(ErrorCode::permission, [&] {
      return RegisteredRegion::allocate(rig.registrar, 32 * 1024, Access::receive, anywhere);
    });
    EXPECT_THAT(sentence, AllOf(HasSubstr("registering 32KiB"), HasSubstr("RLIMIT_MEMLOCK allows: 64KiB"),
                                HasSubstr("hard limit 128KiB"), HasSubstr("48KiB are used"), HasSubstr("ulimit -l"),
                                HasSubstr("limits.conf")));
    // One refusal does not end what works: what fits is registered, and nothing leaked.
    EXPECT_EQ(rig.pinned.value(), 48u * 1024);
    EXPECT_TRUE(RegisteredRegion::allocate(rig.registrar, 16 * 1024, Access::receive, anywhere));
    return true;
  });
}

TEST(MemlockLimit, IsNotBlamedForWhatTheDeviceRefuses) {
  expect_in_child([] {
    soft::DeviceConfig config = shm_config();
    config.limits.max_pinned_bytes = 8 * 1024;
    Rig rig(config);
    if (!give_up_exemption()) return false;
    std::vector<std::byte> buffer(16 * 1024);
    const auto sentence = refusal(ErrorCode::no_space, [&] {
      return RegisteredRegion::of(rig.registrar, buffer.data(), buffer.size(), Access::receive);
    });
    EXPECT_THAT(sentence, HasSubstr("registering 16KiB"));
    return true;
  });
}

TEST(RegisteredRegionTest, SaysWhyNotAsAValueWhereTrafficGoesOn) {
  soft::DeviceConfig config = shm_config();
  config.limits.max_pinned_bytes = page_bytes;
  Rig rig(config);
  std::vector<std::byte> buffer(2 * page_bytes);
  const auto [refused, error] = RegisteredRegion::try_of(rig.registrar, buffer.data(), buffer.size(), Access::source);
  EXPECT_FALSE(refused);
  EXPECT_EQ(error, ENOMEM);
  EXPECT_EQ(rig.pinned.value(), 0u);
}

TEST(RegisteredRegionTest, OfALengthThatCanNotBeRightIsRefused) {
  Rig rig;
  std::byte byte{};
  const auto wrapping = [&] { return RegisteredRegion::of(rig.registrar, &byte, SIZE_MAX, Access::shared); };
  EXPECT_THAT(refusal(ErrorCode::invalid_argument, wrapping), HasSubstr("address space"));
  const auto nothing = [&] { return RegisteredRegion::allocate(rig.registrar, 0, Access::receive, {}); };
  EXPECT_THAT(refusal(ErrorCode::invalid_argument, nothing), HasSubstr("at least 1"));
}

TEST(AccessTest, CoversWhatItIncludes) {
  EXPECT_TRUE(covers(Access::shared, Access::write_target));
  EXPECT_TRUE(covers(Access::source, Access::source));
  EXPECT_TRUE(covers(Access::receive, Access::source));
  EXPECT_FALSE(covers(Access::source, Access::receive));
  EXPECT_FALSE(covers(Access::write_target, Access::shared));
}

// Nothing of the heap lies on registered pages, so a child that has none of them, or copies, still runs; and what the
// parent writes while children come and go is what the device reads.
TEST(RegionTest, SurvivesForksWithWritesInBetween) {
  constexpr int forks = 100;
  constexpr std::size_t bytes = 4096;
  soft::SimNetwork network;
  Rig on_ordinary_memory(soft::open_sim(network));
  Rig on_mappable_memory;
  for (Rig* rig : {&on_ordinary_memory, &on_mappable_memory}) {
    const auto region = RegisteredRegion::allocate(rig->registrar, bytes, Access::receive, {});
    for (int round = 0; round < forks; ++round) {
      std::memset(region.address(), round, bytes);
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        std::vector<std::unique_ptr<char[]>> blocks;
        for (int i = 0; i < 100; ++i) blocks.push_back(std::make_unique<char[]>(8192));
        if (round % 2 == 0) ::execl("/bin/true", "true", nullptr);
        ::_exit(round % 2 == 0 ? 98 : 0);
      }
      std::memset(region.address(), round + 1, bytes / 2);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0) << "fork " << round;
      for (std::size_t i = 0; i < bytes; ++i) {
        ASSERT_EQ(region.address()[i], static_cast<std::byte>(i < bytes / 2 ? round + 1 : round)) << "fork " << round;
      }
    }
  }
}

}  // namespace
}  // namespace verbatim::mem
