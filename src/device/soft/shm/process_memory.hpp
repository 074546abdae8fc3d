// Reading another process's memory with one copy (process_vm_readv(2)), where the system lets us.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "device/soft/shm/layout.hpp"

namespace verbatim::soft::shm {

// Whether the memory of the process that calls itself `sender` can be read: its id must be found at `address`, which
// also shows that `pid` means the same process here as there.
[[nodiscard]] Reach probe(pid_t pid, std::uint64_t address, InstanceId sender);

// False if not everything could be read; `to` is then undefined.
[[nodiscard]] bool read_process_memory(pid_t pid, std::uint64_t address, std::byte* to, std::size_t bytes);

}  // namespace verbatim::soft::shm
