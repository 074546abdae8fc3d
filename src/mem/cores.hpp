// Where threads run.
#pragma once

#include <vector>

#include "device/placement.hpp"

namespace verbatim::mem {

// Hardware threads (the kernel's numbers) in the order in which they should be given to threads: those of the device's
// node on which the calling thread may run, one of each physical core first, then the second of each, and so on. Where
// the node is unknown, all on which the thread may run; where it may run on none of the node, the same, with a warning
// once per process. Never empty. Throws Error(device_failure) if hwloc can't read the host.
[[nodiscard]] std::vector<int> choose_cores(const device::Placement& device);

// The rule behind it. `cores`: the hardware threads of each physical core. Threads that no core lists come last.
[[nodiscard]] std::vector<int> order_by_core(const std::vector<std::vector<int>>& cores,
                                             const std::vector<int>& threads);

// The calling thread, from now on: one's own, never a caller's. Throws Error(permission) if the system does not let
// this thread run there.
void pin_this_thread(int hardware_thread);

}  // namespace verbatim::mem
