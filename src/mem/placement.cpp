#include "mem/placement.hpp"

#include <fmt/format.h>
#include <numa.h>
#include <numaif.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "mem/huge_pages.hpp"
#include "mem/topology.hpp"

namespace verbatim::mem {
namespace {

// Memory bound to a node that has none left ends in the kernel's out-of-memory killer: so much must stay free.
constexpr long long node_reserve_bytes = 64LL << 20;

class NodeMask {
 public:
  NodeMask() : mask_(numa_allocate_nodemask(), numa_bitmask_free) {}
  explicit NodeMask(int node) : NodeMask() { numa_bitmask_setbit(mask_.get(), static_cast<unsigned>(node)); }
  [[nodiscard]] unsigned long* words() const { return mask_->maskp; }
  // The kernel takes the number of bits plus one.
  [[nodiscard]] unsigned long bits() const { return mask_->size + 1; }

 private:
  std::unique_ptr<bitmask, decltype(&numa_bitmask_free)> mask_;
};

void say_once_that_refused(int node) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  log().info("memory on NUMA node {} is refused: {}; it comes from wherever the kernel takes it", node,
             std::strerror(errno));
}

// While it lives, pages that this thread has made (also within a file, which has no policy of its own) come from the
// node as long as there are some.
class PreferNode {
 public:
  explicit PreferNode(int node) {
    if (get_mempolicy(&mode_, before_.words(), before_.bits(), nullptr, 0) != 0) return;
    set_ = set_mempolicy(MPOL_PREFERRED, NodeMask(node).words(), before_.bits()) == 0;
  }
  PreferNode(const PreferNode&) = delete;
  PreferNode& operator=(const PreferNode&) = delete;
  ~PreferNode() {
    if (set_) set_mempolicy(mode_, before_.words(), before_.bits());
  }

 private:
  NodeMask before_;
  int mode_ = MPOL_DEFAULT;
  bool set_ = false;
};

bool has_room(int node, std::size_t bytes) {
  long long free = 0;
  return numa_node_size64(node, &free) > 0 && free > node_reserve_bytes &&
         bytes <= static_cast<std::size_t>(free - node_reserve_bytes);
}

// Pages that are not there yet will come from the node, and those that are move to it.
void bind(const device::Memory& memory, int node) {
  const NodeMask mask(node);
  for (const int mode : {MPOL_BIND, MPOL_PREFERRED}) {
    if (mode == MPOL_BIND && !has_room(node, memory.bytes)) continue;
    if (mbind(memory.address, memory.bytes, mode, mask.words(), mask.bits(), MPOL_MF_MOVE) == 0) return;
  }
  say_once_that_refused(node);
}

[[noreturn]] void refuse_node(int node) {
  std::vector<int> nodes;
  for (const auto& known : read_numa_nodes()) nodes.push_back(known.index);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("memory.numa_node is {}, but this host has node {}; auto is the device's own", node,
                          format_cpu_list(nodes)));
}

}  // namespace

MemoryPlacement place_memory(const device::Placement& device, int numa_node, Switch huge_pages) {
  if (numa_node == -1) return {device.numa_node, huge_pages};
  const bool kernel_knows = numa_available() >= 0;
  if (numa_node < 0 || (kernel_knows ? numa_node > numa_max_node() ||
                                           numa_bitmask_isbitset(numa_nodes_ptr, static_cast<unsigned>(numa_node)) == 0
                                     : numa_node != 0)) {
    refuse_node(numa_node);
  }
  return {numa_node, huge_pages};
}

device::Memory allocate_placed(device::Context& context, std::size_t bytes, const MemoryPlacement& placement) {
  const auto allocate_on = [&](int node) {
    const PreferNode prefer(node);
    const device::Memory memory = context.allocate(bytes);
    if (memory) bind(memory, node);
    return memory;
  };
  const bool placed = placement.numa_node && numa_available() >= 0;
  const device::Memory memory = placed ? allocate_on(*placement.numa_node) : context.allocate(bytes);
  // Before the first byte is touched: a page that is there does not become a huge one at once.
  if (memory) ask_for_huge_pages(memory, placement.huge_pages);
  return memory;
}

}  // namespace verbatim::mem
