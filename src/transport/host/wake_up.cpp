#include "transport/host/wake_up.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>

#include "base/error.hpp"

namespace verbatim::transport::host {
namespace {

[[nodiscard]] timespec to_timespec(Duration duration) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
}

[[noreturn]] void fail(const char* what) {
  throw Error(ErrorCode::no_space, std::string(what) + ": " + std::generic_category().message(errno) +
                                       "; see the limit on open files (ulimit -n)");
}

}  // namespace

WakeUp::WakeUp(std::initializer_list<int> descriptors)
    : epoll_(Descriptor::make([] { return ::epoll_create1(EPOLL_CLOEXEC); })),
      timer_(Descriptor::make([] { return ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); })) {
  if (!epoll_ || !timer_) fail("no descriptor to wait on");
  const auto add = [this](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (fd >= 0 && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) fail("a descriptor can't be waited on");
  };
  for (const int fd : descriptors) add(fd);
  add(timer_.get());
}

void WakeUp::at(Time time) {
  itimerspec when{};
  if (time != never) {
    when.it_value = to_timespec(time.time_since_epoch());
    if (when.it_value.tv_sec == 0 && when.it_value.tv_nsec == 0) when.it_value.tv_nsec = 1;  // 0 would disarm it
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void WakeUp::sleep(Duration at_most) {
  pollfd poll_for{epoll_.get(), POLLIN, 0};
  const timespec timeout = to_timespec(at_most);
  (void)ppoll(&poll_for, 1, &timeout, nullptr);
}

}  // namespace verbatim::transport::host
