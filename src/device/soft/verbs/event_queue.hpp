// A queue of events behind a real file descriptor: readable, for epoll too, exactly while there is an event.
#pragma once

#include <deque>
#include <mutex>
#include <optional>

namespace verbatim::soft {

// The descriptor: an eventfd that counts like a semaphore. Errors of making it throw Error.
class EventDescriptor {
 public:
  EventDescriptor();
  ~EventDescriptor();
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  void raise();
  // Takes one count. Blocks unless the application made the descriptor O_NONBLOCK. 0, or -1 with errno.
  int take();
  // Takes one count that is known to be there.
  void take_back();

 private:
  int fd_;
};

// Its events are guarded by a mutex that all event queues of a device share, so that one lock makes all of them whole
// while the process forks.
template <typename Event>
class EventQueue {
 public:
  explicit EventQueue(std::mutex& mutex) : mutex_(mutex) {}

  [[nodiscard]] int fd() const { return descriptor_.fd(); }

  void push(const Event& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    descriptor_.raise();
  }

  // The oldest. Blocks as the descriptor does; nullopt with errno (EAGAIN, EINTR).
  [[nodiscard]] std::optional<Event> take() {
    for (;;) {
      if (descriptor_.take() != 0) return std::nullopt;
      const std::lock_guard lock(mutex_);
      // Empty when remove_if() took the event between the two steps.
      if (events_.empty()) continue;
      Event event = events_.front();
      events_.pop_front();
      return event;
    }
  }

  // Events of an object that goes away and that nobody has taken yet.
  template <typename Predicate>
  void remove_if(Predicate predicate) {
    const std::lock_guard lock(mutex_);
    const std::size_t removed = std::erase_if(events_, predicate);
    for (std::size_t i = 0; i < removed; ++i) descriptor_.take_back();
  }

 private:
  EventDescriptor descriptor_;
  std::mutex& mutex_;
  std::deque<Event> events_;
};

}  // namespace verbatim::soft
