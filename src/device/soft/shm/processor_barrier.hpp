// A store before a load, across processes, for nearly nothing on the side that does it often: the side that does it
// seldom makes every processor that runs one of our processes pass a full barrier (membarrier(2), GLOBAL_EXPEDITED).
#pragma once

#include <atomic>

namespace verbatim::soft::shm {

// This process takes part. False if the system has no such call: then it must fence for itself.
[[nodiscard]] bool take_part_in_barriers();
// A full barrier here and on every processor that runs a process which takes part. False if there was none elsewhere.
bool barrier_everywhere();

// The often side: earlier stores are seen before later loads are made, given a barrier_everywhere() on the other side,
// or given `fence`.
inline void order_store_before_load(bool fence) {
  if (fence) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

}  // namespace verbatim::soft::shm
