#include "device/soft/shm/processor_barrier.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace verbatim::soft::shm {

bool take_part_in_barriers() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool barrier_everywhere() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

}  // namespace verbatim::soft::shm
