// What this host lets a process do with memory: how much may be locked, which pages there are, what fork and other
// processes may touch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace verbatim::mem {

struct HugePagePool {
  std::uint64_t page_bytes = 0;
  std::uint64_t total = 0;  // pages
  std::uint64_t free = 0;   // pages, those that others have reserved included
};

struct Room {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
};

// What becomes of registered memory in a child of fork(): it may be taken from the parent's device, libibverbs
// withholds it from the child (ibv_fork_init), or the kernel gives the child a copy at once.
enum class ForkSupport { none, withheld, copied };

// Who may read another process's memory (process_vm_readv), which is how the soft device moves payload in one copy.
// Yama's ptrace_scope, as its documentation in the kernel numbers it.
enum class PtraceScope { same_user = 0, descendants = 1, administrators = 2, nobody = 3 };

struct HostLimits {
  std::optional<std::uint64_t> memlock_bytes;      // RLIMIT_MEMLOCK now; nothing: unlimited
  std::optional<std::uint64_t> memlock_max_bytes;  // up to which a process may raise it; nothing: unlimited
  std::vector<HugePagePool> huge_pages;            // by size of the page
  std::optional<Room> shared_memory;               // /dev/shm; nothing: there is none
  ForkSupport fork = ForkSupport::none;
  PtraceScope ptrace_scope = PtraceScope::same_user;
};

// Never fails: what can't be read is as if it weren't there.
[[nodiscard]] HostLimits read_host_limits();

[[nodiscard]] std::vector<HugePagePool> read_huge_pages(const std::filesystem::path& sysfs);
[[nodiscard]] PtraceScope read_ptrace_scope(
    const std::filesystem::path& procfs);  // same_user where the kernel has no Yama

}  // namespace verbatim::mem
