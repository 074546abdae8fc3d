#include "mem/cores.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/error.hpp"
#include "base/log.hpp"
#include "mem/topology.hpp"

namespace verbatim::mem {
namespace {

void warn_once(const std::vector<int>& device, const std::vector<int>& allowed) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  log().warn(
      "this thread may run on none of the processors next to the device ({}); {} are used, which are further away",
      format_cpu_list(device), format_cpu_list(allowed));
}

}  // namespace

std::vector<int> order_by_core(const std::vector<std::vector<int>>& cores, const std::vector<int>& threads) {
  std::vector<std::vector<int>> usable;
  std::vector<int> rest = threads;
  std::size_t most = 0;
  for (const auto& core : cores) {
    std::vector<int> siblings;
    std::ranges::copy_if(core, std::back_inserter(siblings),
                         [&](int thread) { return std::ranges::find(threads, thread) != threads.end(); });
    for (const int thread : siblings) std::erase(rest, thread);
    most = std::max(most, siblings.size());
    usable.push_back(std::move(siblings));
  }
  std::vector<int> ordered;
  for (std::size_t round = 0; round < most; ++round) {
    for (const auto& siblings : usable) {
      if (round < siblings.size()) ordered.push_back(siblings[round]);
    }
  }
  ordered.insert(ordered.end(), rest.begin(), rest.end());
  return ordered;
}

std::vector<int> choose_cores(const device::Placement& device) {
  const std::vector<int> allowed = read_allowed_cpus();
  std::vector<int> near;
  std::ranges::set_intersection(device.cpus, allowed, std::back_inserter(near));
  if (near.empty() && !device.cpus.empty()) warn_once(device.cpus, allowed);
  return order_by_core(read_cores(), near.empty() ? allowed : near);
}

void pin_this_thread(int hardware_thread) {
  cpu_set_t only;
  CPU_ZERO(&only);
  const bool expressible = hardware_thread >= 0 && hardware_thread < CPU_SETSIZE;
  if (expressible) CPU_SET(hardware_thread, &only);
  if (expressible && sched_setaffinity(0, sizeof only, &only) == 0) return;
  throw Error(
      ErrorCode::permission,
      fmt::format("a thread can't be pinned to processor {}: {}; allowed are {}", hardware_thread,
                  expressible ? std::strerror(errno) : "no such processor", format_cpu_list(read_allowed_cpus())));
}

}  // namespace verbatim::mem
