// The NUMA nodes of this host with their processors, as hwloc sees them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace verbatim::mem {

struct NumaNode {
  int index = 0;  // the kernel's, as all numbers here
  std::uint64_t memory_bytes = 0;
  std::uint32_t cores = 0;        // physical ones
  std::vector<int> cpus;          // hardware threads, ascending
  std::vector<int> allowed_cpus;  // of them, those on which the calling thread may run
};

// In the kernel's order. A host without NUMA is one node. Throws Error(device_failure) if hwloc can't read the host.
[[nodiscard]] std::vector<NumaNode> read_numa_nodes();

// The hardware threads of each physical core, in the order of the machine. Throws as above.
[[nodiscard]] std::vector<std::vector<int>> read_cores();

// On which hardware threads the calling thread may run, ascending; never empty. Throws as above.
[[nodiscard]] std::vector<int> read_allowed_cpus();

// "0-3,8", as the kernel writes it; "" for none.
[[nodiscard]] std::string format_cpu_list(const std::vector<int>& cpus);

}  // namespace verbatim::mem
