#include "device/pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace verbatim::device {

Memory map_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t rounded = (bytes + page - 1) / page * page;
  if (rounded < bytes) {
    errno = ENOMEM;
    return {};
  }
  void* address = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == MAP_FAILED ? Memory{} : Memory{address, rounded};
}

void unmap_pages(Memory memory) {
  if (memory) munmap(memory.address, memory.bytes);
}

}  // namespace verbatim::device
