// Control links over TCP. One thread per object, the edge, owns the sockets, looks after their deadlines and hands
// events over; the worker's thread never waits for the network.
//
// On the wire each side says first who it is, "verbatm" and a version byte, then frames: length (4 bytes, little
// endian), content. Whoever says something else, or nothing within handshake_timeout, is dropped.
//
// After fork() the child holds none of the sockets, and the object does nothing there but vanish.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "transport/control/control_link.hpp"

namespace verbatim::transport::host {

class Resolver;

class TcpControl final : public control::ControlLinks {
 public:
  struct Settings {
    Duration handshake_timeout = std::chrono::seconds(5);  // for a stranger to say who he is
    Duration close_timeout = std::chrono::seconds(1);      // for the destructor and close() to send what is queued
    std::shared_ptr<Resolver> resolver = nullptr;          // nullptr: one of its own that asks the system
  };

  // Deadlines are times of MonotonicClock. Throws Error(no_space) if the process has no descriptors left.
  TcpControl();
  explicit TcpControl(const Settings& settings);
  ~TcpControl() override;

  std::string listen(std::string_view host, std::uint16_t first_port, std::uint16_t last_port) override;
  [[nodiscard]] std::string advertised() const override;
  control::LinkId dial(std::string_view address, Time deadline) override;
  void send(control::LinkId link, std::span<const std::byte> frame) override;
  void close(control::LinkId link) override;
  [[nodiscard]] std::vector<control::LinkEvent> take_events() override;
  [[nodiscard]] int event_fd() const noexcept override;

 private:
  struct State;
  [[nodiscard]] bool in_child() const noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace verbatim::transport::host
