#include "device/soft/verbs/engine_lock.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace verbatim::soft {
namespace {

long membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0);
}

bool register_for_membarrier() {
  static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  return registered;
}

// Spins before the processor is given up: the holder is inside for well under a microsecond, unless it was preempted.
constexpr int spins_before_yield = 256;

void wait_a_little(int tries) {
  if (tries < spins_before_yield) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  } else {
    std::this_thread::yield();
  }
}

}  // namespace

void SpinLock::wait(int tries) {
  wait_a_little(tries);
}

void EngineLock::set_biased(bool biased) {
  biased_.store(biased && register_for_membarrier(), std::memory_order_release);
}

void EngineLock::visit() {
  lock_.lock();
  visited_.store(true, std::memory_order_seq_cst);  // in shared mode too: the visit may set the bias
  if (!biased()) return;
  membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  for (int tries = 0; owner_inside_.load(std::memory_order_seq_cst); ++tries) wait_a_little(tries);
}

void EngineLock::end_visit() {
  visited_.store(false, std::memory_order_release);
  lock_.unlock();
}

}  // namespace verbatim::soft
