#include "mem/huge_pages.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>

#include "base/log.hpp"
#include "device/sysfs.hpp"
#include "mem/mappings.hpp"

namespace verbatim::mem {
namespace {

std::uint64_t huge_page_bytes() {
  static const std::uint64_t bytes =
      device::read_number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").value_or(0);
  return bytes;
}

// What the kernel says of the mapping: depends on the host's settings and on the kind of memory (proc(5), THPeligible).
bool may_have_huge_pages(const device::Memory& memory) {
  const auto middle = reinterpret_cast<std::uintptr_t>(memory.address) + memory.bytes / 2;
  std::ifstream mappings("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(mappings, line);) {
    const auto mapping = parse_mapping_line(line);
    found = found || (mapping && middle >= mapping->range.begin && middle < mapping->range.end);
    if (found && line.starts_with("THPeligible:")) return line.ends_with('1');
  }
  return false;
}

}  // namespace

void ask_for_huge_pages(const device::Memory& memory, Switch wanted) {
  if (wanted == Switch::off) {
    ::madvise(memory.address, memory.bytes, MADV_NOHUGEPAGE);
    return;
  }
  const std::uint64_t huge = huge_page_bytes();
  if (huge != 0 && memory.bytes < huge) return;
  const bool accepted = huge != 0 && ::madvise(memory.address, memory.bytes, MADV_HUGEPAGE) == 0;

  // Looked up once in a process: the answer is the same for all its memory, and reading it takes a while.
  static std::atomic<bool> looked_up[2];
  if (looked_up[wanted == Switch::on ? 1 : 0].exchange(true)) return;
  if (accepted && may_have_huge_pages(memory)) return;
  log().log(
      wanted == Switch::on ? spdlog::level::warn : spdlog::level::info,
      "no huge pages for this memory, normal ones are used; "
      "/sys/kernel/mm/transparent_hugepage/enabled (shmem_enabled for the soft device) says where there are some");
}

}  // namespace verbatim::mem
