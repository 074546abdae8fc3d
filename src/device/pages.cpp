#include "device/pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace verbatim::device {
namespace {

// Of x86-64, and of arm64 with pages of 4 KiB. What is as large begins at a multiple of it, so that huge pages fit into
// it.
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

}  // namespace

Memory map_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t rounded = (bytes + page - 1) / page * page;
  if (rounded < bytes) {
    errno = ENOMEM;
    return {};
  }
  const std::size_t slack = rounded < huge_page_bytes ? 0 : huge_page_bytes - page;
  if (rounded + slack < rounded) {
    errno = ENOMEM;
    return {};
  }
  void* mapped = mmap(nullptr, rounded + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return {};
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before =
      slack == 0 ? 0 : (huge_page_bytes - reinterpret_cast<std::uintptr_t>(begin) % huge_page_bytes) % huge_page_bytes;
  if (before != 0) munmap(begin, before);
  if (before != slack) munmap(begin + before + rounded, slack - before);
  return {begin + before, rounded};
}

void unmap_pages(Memory memory) {
  if (memory) munmap(memory.address, memory.bytes);
}

}  // namespace verbatim::device
