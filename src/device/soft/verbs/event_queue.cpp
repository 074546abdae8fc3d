#include "device/soft/verbs/event_queue.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/error.hpp"

namespace verbatim::soft {

EventDescriptor::EventDescriptor() : fd_(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) {
  if (fd_ < 0) {
    throw Error(ErrorCode::no_space,
                fmt::format("soft device: no file descriptor for events: {}; raise the limit with ulimit -n",
                            std::strerror(errno)));
  }
}

EventDescriptor::~EventDescriptor() {
  close(fd_);
}

void EventDescriptor::raise() {
  const std::uint64_t one = 1;
  // Fails only at 2^64-2 events.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
}

int EventDescriptor::take() {
  std::uint64_t count = 0;
  return read(fd_, &count, sizeof(count)) == sizeof(count) ? 0 : -1;
}

void EventDescriptor::take_back() {
  // A reader may have been faster: then there is nothing to take, and it will find the queue empty and go on waiting.
  pollfd ready{fd_, POLLIN, 0};
  if (poll(&ready, 1, 0) == 1) (void)take();
}

}  // namespace verbatim::soft
