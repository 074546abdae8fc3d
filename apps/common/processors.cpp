#include "common/processors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "mem/cores.hpp"
#include "mem/topology.hpp"

namespace verbatim::apps {

void pin_to(int processor) {
  static const std::vector<int> allowed = mem::read_allowed_cpus();  // before the first pin narrows them
  if (std::ranges::find(allowed, processor) == allowed.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("processor {} is none that this process may run on; there are {}", processor,
                            mem::format_cpu_list(allowed)));
  }
  mem::pin_this_thread(processor);
}

}  // namespace verbatim::apps
