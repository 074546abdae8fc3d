// Which process this is, so that a reused pid is not taken for it: pid and start time (proc(5), /proc/<pid>/stat field
// 22).
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace verbatim::soft::shm {

struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // clock ticks since boot; 0 where /proc tells nothing

  [[nodiscard]] static ProcessIdentity self();
  // False once the process is gone, is a zombie, or another one has its pid. Costs system calls.
  [[nodiscard]] bool alive() const;
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

}  // namespace verbatim::soft::shm
