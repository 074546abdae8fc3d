// Where a device sits: its NUMA node and the processors next to it.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace verbatim::device {

struct Placement {
  std::optional<int> numa_node;  // unknown where the device has no PCI place, or the kernel doesn't say
  std::vector<int> cpus;         // of that node, in the kernel's numbers, ascending; empty where the node is unknown
};

// Never fails: whatever the kernel doesn't say, or says of a node that doesn't exist, is unknown.
[[nodiscard]] Placement find_placement(std::string_view device, const std::filesystem::path& sysfs);

}  // namespace verbatim::device
