// What the worker's thread and the edge's hand to each other: commands one way, events the other. Each side is woken by
// an eventfd; the worker's data path looks at one flag instead.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "transport/control/address.hpp"
#include "transport/control/control_link.hpp"
#include "transport/host/descriptor.hpp"

namespace verbatim::transport::host {

// A counter that poll() and epoll wait for. Shared by whoever may have to wake the other side later than it lives.
class EventCounter {
 public:
  // Throws Error(no_space): no descriptors left.
  EventCounter();
  void set() noexcept;
  void clear() noexcept;
  [[nodiscard]] int fd() const noexcept { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
};

namespace command {
struct Listen {
  Descriptor socket;
};
struct Dial {
  control::LinkId link;
  control::Address address;
  Time deadline;
};
struct Send {
  control::LinkId link;
  std::vector<std::byte> frame;
};
struct Close {
  control::LinkId link;
};
struct Stop {};  // send what is queued, and end
}  // namespace command
using Command = std::variant<command::Listen, command::Dial, command::Send, command::Close, command::Stop>;

class Mailbox {
 public:
  // Beyond either the edge reads no more from the network until the worker has taken the events.
  static constexpr std::size_t max_events = 4096;
  static constexpr std::size_t max_event_bytes = std::size_t{8} << 20;

  explicit Mailbox(std::atomic<bool>& has_events) : has_events_(has_events) {}

  // The worker's thread.
  void post(Command command);
  [[nodiscard]] std::vector<control::LinkEvent> take_events();
  [[nodiscard]] int event_fd() const noexcept { return events_wake_.fd(); }

  // The edge's thread.
  [[nodiscard]] std::vector<Command> take_commands();
  void post(control::LinkEvent event);
  [[nodiscard]] bool full();
  [[nodiscard]] const std::shared_ptr<EventCounter>& edge_wake() const noexcept { return edge_wake_; }

 private:
  [[nodiscard]] bool is_full() const noexcept {
    return events_.size() >= max_events || event_bytes_ >= max_event_bytes;
  }

  std::atomic<bool>& has_events_;
  EventCounter events_wake_;
  std::shared_ptr<EventCounter> edge_wake_ = std::make_shared<EventCounter>();
  std::mutex mutex_;
  std::vector<Command> commands_;
  std::vector<control::LinkEvent> events_;
  std::size_t event_bytes_ = 0;
};

}  // namespace verbatim::transport::host
