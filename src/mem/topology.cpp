#include "mem/topology.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwloc.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.hpp"

namespace verbatim::mem {
namespace {

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
  void operator()(hwloc_bitmap_s* set) const { hwloc_bitmap_free(set); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, Destroy>;

Topology load() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) == 0) {
    Topology owner(topology);
    if (hwloc_topology_load(topology) == 0) return owner;
  }
  throw Error(ErrorCode::device_failure,
              fmt::format("hwloc can't read this host's topology: {}", std::strerror(errno)));
}

std::vector<int> members(hwloc_const_bitmap_t set) {
  std::vector<int> indices;
  for (int index = hwloc_bitmap_first(set); index >= 0; index = hwloc_bitmap_next(set, index)) indices.push_back(index);
  return indices;
}

NumaNode read_node(const Topology& topology, hwloc_obj_t object) {
  NumaNode node;
  node.index = static_cast<int>(object->os_index);
  node.memory_bytes = object->attr->numanode.local_memory;
  node.cores = static_cast<std::uint32_t>(
      hwloc_get_nbobjs_inside_cpuset_by_type(topology.get(), object->cpuset, HWLOC_OBJ_CORE));
  node.cpus = members(object->cpuset);
  const Bitmap allowed(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology.get(), allowed.get(), HWLOC_CPUBIND_THREAD) == 0) {
    hwloc_bitmap_and(allowed.get(), allowed.get(), object->cpuset);
    node.allowed_cpus = members(allowed.get());
  } else {
    node.allowed_cpus = node.cpus;
  }
  return node;
}

}  // namespace

std::vector<NumaNode> read_numa_nodes() {
  const auto topology = load();
  std::vector<NumaNode> nodes;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, object)) != nullptr) {
    nodes.push_back(read_node(topology, object));
  }
  return nodes;
}

std::vector<std::vector<int>> read_cores() {
  const auto topology = load();
  std::vector<std::vector<int>> cores;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, object)) != nullptr) {
    cores.push_back(members(object->cpuset));
  }
  return cores;
}

std::vector<int> read_allowed_cpus() {
  const auto topology = load();
  const Bitmap allowed(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology.get(), allowed.get(), HWLOC_CPUBIND_THREAD) == 0) return members(allowed.get());
  return members(hwloc_topology_get_allowed_cpuset(topology.get()));
}

std::string format_cpu_list(const std::vector<int>& cpus) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    runs.push_back(first == last ? fmt::format("{}", cpus[first]) : fmt::format("{}-{}", cpus[first], cpus[last]));
    first = last + 1;
  }
  return fmt::format("{}", fmt::join(runs, ","));
}

}  // namespace verbatim::mem
