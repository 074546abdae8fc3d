#include "device/soft/shm/process_memory.hpp"

#include <sys/uio.h>

#include <cstring>

namespace verbatim::soft::shm {

Reach probe(pid_t pid, std::uint64_t address, InstanceId sender) {
  InstanceId found;
  if (pid <= 0 || !read_process_memory(pid, address, reinterpret_cast<std::byte*>(&found), sizeof found)) {
    return Reach::refused;
  }
  return found == sender ? Reach::readable : Reach::refused;
}

bool read_process_memory(pid_t pid, std::uint64_t address, std::byte* to, std::size_t bytes) {
  while (bytes != 0) {
    const iovec local{to, bytes};
    const iovec remote{reinterpret_cast<void*>(address), bytes};
    const ssize_t got = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got <= 0) return false;
    address += static_cast<std::uint64_t>(got);
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace verbatim::soft::shm
