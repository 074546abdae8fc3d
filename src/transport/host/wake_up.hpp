// What a sleeping worker's thread waits on: one descriptor that is readable when a completion, a control event or a
// deadline is due.
#pragma once

#include <initializer_list>

#include "base/clock.hpp"
#include "transport/host/descriptor.hpp"

namespace verbatim::transport::host {

class WakeUp {
 public:
  // Descriptors, those below 0 left out, that stay their owners'. Throws Error(no_space) if the process has none left.
  explicit WakeUp(std::initializer_list<int> descriptors);
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }
  // Readable from then on (of MonotonicClock), until the next call; never: not for this reason.
  void at(Time time);
  // Until it is readable, at most that long. A signal may end it early.
  void sleep(Duration at_most);

 private:
  Descriptor epoll_;
  Descriptor timer_;
};

}  // namespace verbatim::transport::host
