#include "common/processors.hpp"

#include <fmt/format.h>
#include <sched.h>

#include "base/error.hpp"

namespace verbatim::apps {

std::vector<int> allowed_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<int> processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed)) processors.push_back(processor);
  }
  return processors;
}

void pin_to(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  if (processor >= 0 && processor < CPU_SETSIZE) CPU_SET(processor, &one);
  if (CPU_COUNT(&one) == 1 && sched_setaffinity(0, sizeof(one), &one) == 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("processor {} is none that this process may run on; there are {}", processor,
                          fmt::join(allowed_processors(), ", ")));
}

}  // namespace verbatim::apps
