#include "mem/registration_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "sanitizers.hpp"
#include "unit/mem/child.hpp"
#include "unit/mem/rig.hpp"

namespace verbatim::mem {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t plenty = std::size_t{1} << 30;

// Memory of its own mapping, between pages that nobody may touch: neighbours can't merge with it.
class Mapped {
 public:
  explicit Mapped(std::size_t pages) : bytes_(pages * page_bytes) {
    // Far from where the kernel puts what nobody placed: a page that a test gives up stays free until it is mapped
    // again.
    void* const apart = reinterpret_cast<void*>(std::uintptr_t{1} << 45);
    void* const all = ::mmap(apart, bytes_ + 2 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    begin_ = static_cast<std::byte*>(all) + page_bytes;
    ::mprotect(begin_, bytes_, PROT_READ | PROT_WRITE);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { ::munmap(begin_ - page_bytes, bytes_ + 2 * page_bytes); }
  [[nodiscard]] std::byte* data() const { return begin_; }
  [[nodiscard]] std::byte* page(std::size_t number) const { return begin_ + number * page_bytes; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* begin_;
};

class RegistrationCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string problem = registration_cache_problem();
    if (!problem.empty()) GTEST_SKIP() << problem;
  }
  Rig rig;
};

TEST_F(RegistrationCacheTest, RegistersOnceAndFindsParts) {
  RegistrationCache cache(rig.registrar, plenty);
  ASSERT_EQ(cache.why_off(), nullptr);
  const Mapped memory(4);
  const auto first = cache.find_or_register(memory.data(), memory.bytes(), Access::shared);
  ASSERT_TRUE(first);
  EXPECT_NE(first.lkey(), LKey{});
  const auto part = cache.find_or_register(memory.data() + 5, 1000, Access::source);
  EXPECT_EQ(part.lkey(), first.lkey());
  EXPECT_EQ(part.rkey(), first.rkey());
  EXPECT_EQ(cache.statistics().hits, 1u);
  EXPECT_EQ(cache.statistics().misses, 1u);
  EXPECT_EQ(rig.pinned.value(), memory.bytes());
}

TEST_F(RegistrationCacheTest, OfNoBytesGivesNoKeysAndNoError) {
  RegistrationCache cache(rig.registrar, plenty);
  const auto nothing = cache.find_or_register(nullptr, 0, Access::source);
  EXPECT_TRUE(nothing);
  EXPECT_EQ(nothing.lkey(), LKey{});
  EXPECT_EQ(cache.cached_bytes(), 0u);
}

TEST_F(RegistrationCacheTest, MakesOneOfRangesThatOverlapAndOfTheirRights) {
  RegistrationCache cache(rig.registrar, plenty);
  const Mapped memory(6);
  const auto first = cache.find_or_register(memory.page(0), 3 * page_bytes, Access::source);
  const auto second = cache.find_or_register(memory.page(2), 3 * page_bytes, Access::receive);
  EXPECT_NE(first.lkey(), second.lkey());
  EXPECT_EQ(cache.cached_bytes(), 5 * page_bytes);
  const auto all = cache.find_or_register(memory.page(0), 5 * page_bytes, Access::receive);
  EXPECT_EQ(all.lkey(), second.lkey());
  // The first is leased still, so it is registered still.
  EXPECT_EQ(rig.pinned.value(), 8 * page_bytes);
}

TEST_F(RegistrationCacheTest, RegistersAnewForMoreRights) {
  RegistrationCache cache(rig.registrar, plenty);
  const Mapped memory(1);
  const auto read = cache.find_or_register(memory.data(), page_bytes, Access::source);
  const auto written = cache.find_or_register(memory.data(), page_bytes, Access::write_target);
  EXPECT_NE(read.lkey(), written.lkey());
  EXPECT_EQ(cache.find_or_register(memory.data(), page_bytes, Access::source).lkey(), written.lkey());
}

TEST_F(RegistrationCacheTest, KeepsNoMoreThanItMayAndForgetsTheOldestFirst) {
  RegistrationCache cache(rig.registrar, 3 * page_bytes);
  const Mapped memory(8);
  const auto use = [&](std::size_t page) {
    return cache.find_or_register(memory.page(page), page_bytes, Access::source).lkey();
  };
  const auto zero = use(0);
  use(2);
  use(4);
  EXPECT_EQ(use(0), zero);
  use(6);  // instead of page 2
  EXPECT_EQ(cache.cached_bytes(), 3 * page_bytes);
  EXPECT_EQ(cache.statistics().evicted, 1u);
  EXPECT_EQ(use(0), zero);
  EXPECT_EQ(cache.statistics().hits, 2u);
  use(2);
  EXPECT_EQ(cache.statistics().hits, 2u);
  EXPECT_EQ(rig.pinned.value(), 3 * page_bytes);
}

TEST_F(RegistrationCacheTest, NeverTakesWhatIsLeased) {
  RegistrationCache cache(rig.registrar, page_bytes);
  const Mapped memory(4);
  auto held = cache.find_or_register(memory.page(0), page_bytes, Access::source);
  {
    const auto another = cache.find_or_register(memory.page(2), page_bytes, Access::source);
    EXPECT_TRUE(another);
    EXPECT_EQ(rig.pinned.value(), 2 * page_bytes);
  }
  EXPECT_EQ(rig.pinned.value(), page_bytes);
  EXPECT_EQ(cache.find_or_register(memory.page(0), page_bytes, Access::source).lkey(), held.lkey());
  const auto large = cache.find_or_register(memory.page(1), 3 * page_bytes, Access::source);
  EXPECT_TRUE(large);
  EXPECT_EQ(cache.cached_bytes(), page_bytes);
}

TEST_F(RegistrationCacheTest, TakesAUsersRegionFirst) {
  RegistrationCache cache(rig.registrar, plenty);
  const Mapped memory(8);
  const auto small = RegisteredRegion::of(rig.registrar, memory.page(2), page_bytes, Access::shared);
  const auto large = RegisteredRegion::of(rig.registrar, memory.page(0), 6 * page_bytes, Access::source);
  cache.add(small);
  cache.add(large);
  const auto key = [&](std::size_t page, std::size_t pages, Access access) {
    return cache.find_or_register(memory.page(page), pages * page_bytes, access).lkey();
  };
  EXPECT_EQ(key(2, 1, Access::shared), small.lkey());
  EXPECT_EQ(key(3, 2, Access::source), large.lkey());
  EXPECT_EQ(cache.cached_bytes(), 0u);
  EXPECT_NE(key(3, 2, Access::receive), large.lkey());
  EXPECT_NE(key(5, 2, Access::source), large.lkey());
  cache.remove(large);
  EXPECT_NE(key(0, 2, Access::source), large.lkey());
  cache.remove(small);
  EXPECT_NE(key(2, 1, Access::shared), small.lkey());
}

// What takes a mapping's pages away; the memory is mapped at the same place afterwards.
struct Loss {
  const char* name;
  std::function<void(const Mapped&)> lose;
};

class LostMemory : public RegistrationCacheTest, public ::testing::WithParamInterface<Loss> {};

TEST_P(LostMemory, IsNotFoundAgain) {
  RegistrationCache cache(rig.registrar, plenty);
  const Mapped memory(4);
  std::memset(memory.data(), 1, memory.bytes());
  const auto before = cache.find_or_register(memory.page(0), 2 * page_bytes, Access::shared).lkey();
  const auto beside = cache.find_or_register(memory.page(2), page_bytes, Access::shared).lkey();
  GetParam().lose(memory);
  const auto after = cache.find_or_register(memory.page(0), 2 * page_bytes, Access::shared);
  ASSERT_TRUE(after);
  EXPECT_NE(after.lkey(), before);
  EXPECT_EQ(cache.find_or_register(memory.page(2), page_bytes, Access::shared).lkey(), beside);
  EXPECT_EQ(cache.statistics().died, 1u);
  EXPECT_EQ(rig.pinned.value(), 3 * page_bytes);
  // And what was registered after the loss is kept.
  EXPECT_EQ(cache.find_or_register(memory.page(0), 2 * page_bytes, Access::shared).lkey(), after.lkey());
}

void map_again(std::byte* where) {
  constexpr int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  ASSERT_EQ(::mmap(where, page_bytes, PROT_READ | PROT_WRITE, fixed, -1, 0), where);
}

INSTANTIATE_TEST_SUITE_P(Ways, LostMemory,
                         ::testing::Values(Loss{"Unmapped",
                                                [](const Mapped& memory) {
                                                  ASSERT_EQ(::munmap(memory.page(1), page_bytes), 0);
                                                  map_again(memory.page(1));
                                                }},
                                           Loss{"MappedOver", [](const Mapped& memory) { map_again(memory.page(0)); }},
                                           Loss{"MovedAway",
                                                [](const Mapped& memory) {
                                                  void* const away =
                                                      ::mremap(memory.page(1), page_bytes, page_bytes,
                                                               MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
                                                  ASSERT_NE(away, MAP_FAILED);
                                                  ::munmap(away, page_bytes);
                                                }},
                                           Loss{"Discarded",
                                                [](const Mapped& memory) {
                                                  ASSERT_EQ(::madvise(memory.page(0), page_bytes, MADV_DONTNEED), 0);
                                                }},
                                           Loss{"FreedLazily",
                                                [](const Mapped& memory) {
                                                  ASSERT_EQ(::madvise(memory.page(1), page_bytes, MADV_FREE), 0);
                                                }}),
                         [](const auto& loss) { return loss.param.name; });

// Another thread changes the memory, says so, and this one must know: the event can't come later than the word.
TEST_F(RegistrationCacheTest, LearnsOfALossBeforeItsThreadGoesOn) {
  constexpr int rounds = 500;
  RegistrationCache cache(rig.registrar, plenty);
  const Mapped memory(1);
  std::atomic<int> lost{0};
  std::atomic<int> used{0};
  std::thread other([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (used.load() < round) ::sched_yield();
      map_again(memory.page(0));
      lost.store(round);
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    EXPECT_TRUE(cache.find_or_register(memory.data(), page_bytes, Access::source));
    used.store(round);
    while (lost.load() < round) ::sched_yield();
    if (round % 2 == 0) cache.reap();
  }
  other.join();
  EXPECT_EQ(cache.statistics().hits, 0u);
  EXPECT_EQ(cache.statistics().died, std::uint64_t{rounds});
}

// The cache's own heap is watched too here, with buffers of every size on it, and freed under its hands.
TEST_F(RegistrationCacheTest, LivesOnAHeapThatItWatches) {
  if (under_thread_sanitizer) GTEST_SKIP() << "the heap is ThreadSanitizer's own";
  constexpr int rounds = 400;
  // So that it gives memory back at every opportunity.
  if (::mallopt(M_MMAP_THRESHOLD, 64 * 1024) == 0) GTEST_SKIP() << "this malloc can't be told when to map";
  ASSERT_EQ(::mallopt(M_TRIM_THRESHOLD, 0), 1);
  RegistrationCache cache(rig.registrar, std::size_t{8} << 20);
  const auto churn = [] {
    for (int round = 0; round < rounds; ++round) {
      std::vector<std::vector<char>> blocks;
      for (std::size_t size = 64; size <= (std::size_t{1} << 20); size *= 4) blocks.emplace_back(size, 'x');
    }
  };
  std::thread other(churn);
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::vector<std::byte>> buffers;
    for (std::size_t size = 100; size <= 400000; size *= 4) {
      auto& buffer = buffers.emplace_back(size);
      ASSERT_TRUE(cache.find_or_register(buffer.data(), buffer.size(), Access::receive));
      buffer.resize(size * 2);  // realloc and free, while what was there is cached
    }
  }
  other.join();
  EXPECT_GE(cache.statistics().died, std::uint64_t{rounds} / 2);
  EXPECT_LE(cache.cached_bytes(), std::size_t{8} << 20);
}

// A program may move a mapping of which it has sent a part.
TEST_F(RegistrationCacheTest, LeavesMappingsWhole) {
  RegistrationCache cache(rig.registrar, plenty);
  constexpr std::size_t bytes = 16 * page_bytes;
  void* const mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  EXPECT_TRUE(cache.find_or_register(static_cast<std::byte*>(mapping) + 4 * page_bytes, page_bytes, Access::source));
  EXPECT_EQ(cache.cached_bytes(), page_bytes);
  void* const grown = ::mremap(mapping, bytes, 64 * bytes, MREMAP_MAYMOVE);
  ASSERT_NE(grown, MAP_FAILED) << std::strerror(errno);
  ::munmap(grown, 64 * bytes);
}

TEST_F(RegistrationCacheTest, KeepsNothingWhoseLossWouldGoUnnoticed) {
  RegistrationCache cache(rig.registrar, plenty);
  const int file = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, page_bytes), 0);
  void* const of_file = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const shared = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void* const copied = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  // Not a variable's address: AddressSanitizer keeps variables in memory that can be watched.
  void* const on_stack = __builtin_frame_address(0);
  for (void* address : {of_file, shared, copied, on_stack}) {
    EXPECT_TRUE(cache.find_or_register(address, 100, Access::source));
    EXPECT_EQ(cache.cached_bytes(), 0u);
    EXPECT_EQ(rig.pinned.value(), 0u);
  }
  for (void* mapping : {of_file, shared, copied}) ::munmap(mapping, page_bytes);
  ::close(file);
}

TEST_F(RegistrationCacheTest, RegistersEachTimeWhenItIsOff) {
  RegistrationCache cache(rig.registrar, 0);
  EXPECT_STREQ(cache.why_off(), "memory.registration_cache_bytes is 0");
  const Mapped memory(1);
  {
    const auto lease = cache.find_or_register(memory.data(), page_bytes, Access::shared);
    EXPECT_TRUE(lease);
    EXPECT_EQ(rig.pinned.value(), page_bytes);
  }
  EXPECT_EQ(rig.pinned.value(), 0u);
}

TEST_F(RegistrationCacheTest, GivesUpIdleEntriesWhereNoMoreMayBePinned) {
  soft::DeviceConfig config = shm_config();
  config.limits.max_pinned_bytes = 2 * page_bytes;
  Rig small(config);
  RegistrationCache cache(small.registrar, plenty);
  const Mapped memory(8);
  EXPECT_TRUE(cache.find_or_register(memory.page(0), 2 * page_bytes, Access::source));
  const auto held = cache.find_or_register(memory.page(3), 2 * page_bytes, Access::source);
  EXPECT_TRUE(held);
  const auto refused = cache.find_or_register(memory.page(6), page_bytes, Access::source);
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.error(), ENOMEM);
}

TEST_F(RegistrationCacheTest, IsSharedByTwoWorkersWithoutGettingInEachOthersWay) {
  RegistrationCache first(rig.registrar, plenty);
  RegistrationCache second(rig.registrar, plenty);
  const Mapped memory(1);
  for (auto* cache : {&first, &second}) {
    EXPECT_TRUE(cache->find_or_register(memory.data(), page_bytes, Access::source));
    EXPECT_EQ(cache->cached_bytes(), page_bytes);
  }
  map_again(memory.page(0));
  for (auto* cache : {&first, &second}) {
    cache->reap();
    EXPECT_EQ(cache->statistics().died, 1u);
  }
}

TEST_F(RegistrationCacheTest, DoesNotDisturbAForkedChild) {
  if (under_thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer lets no forked child start threads";
  RegistrationCache cache(rig.registrar, plenty);
  const Mapped memory(2);
  const auto use = [&] { EXPECT_TRUE(cache.find_or_register(memory.data(), memory.bytes(), Access::source)); };
  // The watching thread has started once it has seen a loss. A child of a process that is starting a thread would
  // inherit whatever lock AddressSanitizer holds meanwhile.
  use();
  map_again(memory.page(0));
  use();
  ASSERT_EQ(cache.statistics().died, 1u);
  expect_in_child([&] {
    map_again(memory.page(0));
    std::string problem;
    return MappingWatch::of_this_process(problem) != nullptr;
  });
  cache.reap();
  EXPECT_EQ(cache.statistics().died, 1u);
}

}  // namespace
}  // namespace verbatim::mem
