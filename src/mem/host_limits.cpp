#include "mem/host_limits.hpp"

#include <infiniband/verbs.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "device/sysfs.hpp"

namespace verbatim::mem {
namespace {

std::optional<std::uint64_t> bytes_of(rlim_t limit) {
  return limit == RLIM_INFINITY ? std::nullopt : std::optional<std::uint64_t>(limit);
}

std::optional<Room> read_room(const char* directory) {
  struct statvfs room {};
  if (statvfs(directory, &room) != 0) return std::nullopt;
  return Room{room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize};
}

ForkSupport read_fork_support() {
  switch (ibv_is_fork_initialized()) {
    case IBV_FORK_DISABLED:
      return ForkSupport::none;
    case IBV_FORK_ENABLED:
      return ForkSupport::withheld;
    case IBV_FORK_UNNEEDED:
      return ForkSupport::copied;
  }
  return ForkSupport::none;
}

// "hugepages-2048kB"
std::uint64_t page_bytes_of(const std::string& directory) {
  constexpr std::string_view prefix = "hugepages-";
  std::uint64_t kibibytes = 0;
  if (!directory.starts_with(prefix)) return 0;
  std::from_chars(directory.data() + prefix.size(), directory.data() + directory.size(), kibibytes);
  return kibibytes * 1024;
}

}  // namespace

std::vector<HugePagePool> read_huge_pages(const std::filesystem::path& sysfs) {
  std::vector<HugePagePool> pools;
  std::error_code absent;
  for (const auto& directory : std::filesystem::directory_iterator(sysfs / "kernel/mm/hugepages", absent)) {
    const auto bytes = page_bytes_of(directory.path().filename().string());
    const auto total = device::read_number(directory.path() / "nr_hugepages");
    const auto free = device::read_number(directory.path() / "free_hugepages");
    if (bytes != 0 && total && free) pools.push_back({bytes, *total, *free});
  }
  std::ranges::sort(pools, {}, &HugePagePool::page_bytes);
  return pools;
}

PtraceScope read_ptrace_scope(const std::filesystem::path& procfs) {
  const auto scope = device::read_number(procfs / "sys/kernel/yama/ptrace_scope").value_or(0);
  return static_cast<PtraceScope>(std::min<std::uint64_t>(scope, static_cast<std::uint64_t>(PtraceScope::nobody)));
}

HostLimits read_host_limits() {
  HostLimits limits;
  rlimit memlock{};
  if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0) {
    limits.memlock_bytes = bytes_of(memlock.rlim_cur);
    limits.memlock_max_bytes = bytes_of(memlock.rlim_max);
  }
  limits.huge_pages = read_huge_pages("/sys");
  limits.shared_memory = read_room("/dev/shm");
  limits.fork = read_fork_support();
  limits.ptrace_scope = read_ptrace_scope("/proc");
  return limits;
}

}  // namespace verbatim::mem
