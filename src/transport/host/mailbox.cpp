#include "transport/host/mailbox.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace verbatim::transport::host {

EventCounter::EventCounter() : descriptor_(Descriptor::make([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); })) {
  if (!descriptor_) {
    throw Error(ErrorCode::no_space, fmt::format("no event descriptor for control links: {}; raise the limit on open "
                                                 "files (ulimit -n)",
                                                 std::generic_category().message(errno)));
  }
}

void EventCounter::set() noexcept {
  const std::uint64_t one = 1;
  // EAGAIN: the counter is at its limit, so it is set already.
  (void)uninterrupted([&] { return ::write(descriptor_.get(), &one, sizeof(one)); });
}

void EventCounter::clear() noexcept {
  std::uint64_t count = 0;
  (void)uninterrupted([&] { return ::read(descriptor_.get(), &count, sizeof(count)); });
}

void Mailbox::post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  edge_wake_->set();
}

std::vector<Command> Mailbox::take_commands() {
  edge_wake_->clear();
  const std::lock_guard lock(mutex_);
  return std::exchange(commands_, {});
}

void Mailbox::post(control::LinkEvent event) {
  const std::lock_guard lock(mutex_);
  event_bytes_ += event.frame.size();
  events_.push_back(std::move(event));
  if (!has_events_.exchange(true, std::memory_order_relaxed)) events_wake_.set();
}

std::vector<control::LinkEvent> Mailbox::take_events() {
  const std::lock_guard lock(mutex_);
  if (is_full()) edge_wake_->set();
  has_events_.store(false, std::memory_order_relaxed);
  events_wake_.clear();
  event_bytes_ = 0;
  return std::exchange(events_, {});
}

bool Mailbox::full() {
  const std::lock_guard lock(mutex_);
  return is_full();
}

}  // namespace verbatim::transport::host
