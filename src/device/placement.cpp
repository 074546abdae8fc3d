#include "device/placement.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <memory>

#include "device/sysfs.hpp"

namespace verbatim::device {
namespace {

// "0-3,8-11", as the kernel writes a set of processors.
std::vector<int> parse_cpu_list(const std::string& text) {
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> set(hwloc_bitmap_alloc(), hwloc_bitmap_free);
  // hwloc takes an open range ("4-") for an infinite set.
  if (hwloc_bitmap_list_sscanf(set.get(), text.c_str()) != 0 || hwloc_bitmap_weight(set.get()) < 0) return {};
  std::vector<int> cpus;
  for (int cpu = hwloc_bitmap_first(set.get()); cpu >= 0; cpu = hwloc_bitmap_next(set.get(), cpu)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace

Placement find_placement(std::string_view device, const std::filesystem::path& sysfs) {
  const auto node = read_number(sysfs / "class/infiniband" / device / "device/numa_node");
  if (!node) return {};
  const auto cpus = read_line(sysfs / fmt::format("devices/system/node/node{}/cpulist", *node));
  if (!cpus) return {};
  return {static_cast<int>(*node), parse_cpu_list(*cpus)};
}

}  // namespace verbatim::device
