#include "conformance/two_process_fabric.hpp"

#include <sched.h>

#include <thread>

namespace verbatim::conformance {

bool TwoProcessFabric::wait_until(const std::function<bool()>& predicate, Duration patience) {
  const Time deadline = now() + patience;
  while (!predicate()) {
    if (now() > deadline) return false;
    sched_yield();
  }
  return true;
}

void TwoProcessFabric::advance(Duration duration) {
  std::this_thread::sleep_for(duration);
}

}  // namespace verbatim::conformance
