// Tells when memory loses its pages: when it is unmapped, moved or discarded, by whichever call, also one inside
// malloc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace verbatim::mem {

// One per process, since the kernel lets a mapping be watched by one userfaultfd only. The kernel makes a thread that
// unmaps watched memory wait until the event is read. So a thread of its own reads them, and does nothing else: it
// takes no lock, allocates nothing and frees nothing, which could make it wait for itself.
//
// What always holds: once munmap() and the like have returned to their caller, alive() and deaths() know of it. So
// whoever learns of the new mapping can't find the old one alive.
//
// Mappings are watched as a whole and stay so until the watch goes: watching a part would split them, and mremap()
// across the parts would fail. Nothing is write-protected, so no access to the memory costs anything or waits.
class MappingWatch {
 public:
  static constexpr std::size_t max_ranges = 16384;
  using Index = std::uint32_t;

  // The process's own, made if there is none (a forked child makes one for itself). Nothing where the kernel refuses,
  // with the reason in `problem`.
  [[nodiscard]] static std::shared_ptr<MappingWatch> of_this_process(std::string& problem);

  MappingWatch(const MappingWatch&) = delete;
  MappingWatch& operator=(const MappingWatch&) = delete;
  ~MappingWatch();

  // Any thread. Nothing if the memory is not all private and anonymous (pages of files and of shared memory can go
  // unnoticed), if somebody else watches it, or if max_ranges are watched.
  [[nodiscard]] std::optional<Index> watch(const void* address, std::size_t bytes);
  void forget(Index index) noexcept;

  // Whether nothing has happened to the range since watch().
  [[nodiscard]] bool alive(Index index) const noexcept;
  // Changes whenever ranges have died.
  [[nodiscard]] std::uint64_t deaths() const noexcept;

 private:
  struct Range {
    std::atomic<bool> claimed{false};
    std::atomic<bool> dead{false};
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> end{0};
  };

  MappingWatch(int events, int stop);
  // Waits for the reading thread while it is between an event and its marks, which takes some microseconds.
  void settle() const noexcept;
  void read_until_stopped() noexcept;
  void read_events() noexcept;
  void mark(std::uintptr_t begin, std::uintptr_t end) noexcept;

  const int events_;  // the userfaultfd
  const int stop_;    // an eventfd
  const int owner_;   // the process whose memory it is
  std::array<Range, max_ranges> ranges_;
  std::atomic<Index> used_{0};  // of them, those that were ever claimed
  std::atomic<bool> reading_{false};
  std::atomic<std::uint64_t> deaths_{0};
  std::unique_ptr<std::thread> reader_;
};

}  // namespace verbatim::mem
