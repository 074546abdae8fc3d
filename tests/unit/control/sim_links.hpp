// Control links of a simulated network: virtual time, seeded delays, and a test's own ideas of what is late or lost.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "transport/control/control_link.hpp"

namespace verbatim::transport::control {

class SimLinks;

class SimNetwork {
 public:
  explicit SimNetwork(std::uint64_t seed) : random(seed) {}

  // How long the next thing from one end to the other takes. Things of one direction of one link keep their order.
  std::function<Duration()> delay = [this] { return Duration(1000 + random.below(100000)); };
  // Asked for each frame; true: the link breaks instead.
  std::function<bool(const std::string& from, std::span<const std::byte> frame)> breaks = [](auto&&...) {
    return false;
  };

  // The next thing happens, and time goes on to it. False: nothing is under way.
  bool step();
  [[nodiscard]] Time next() const { return agenda_.empty() ? never : agenda_.begin()->first; }
  void at(Time time, std::function<void()> what) { agenda_.emplace(time, std::move(what)); }

  VirtualClock clock;
  Random random;
  std::map<std::string, SimLinks*> listening;
  std::uint64_t last_link = 0;

 private:
  std::multimap<Time, std::function<void()>> agenda_;
};

class SimLinks final : public ControlLinks {
 public:
  SimLinks(SimNetwork& network, std::string address) : network_(network), address_(std::move(address)) {
    network_.listening[address_] = this;
  }

  std::string listen(std::string_view, std::uint16_t, std::uint16_t) override { return address_; }
  [[nodiscard]] std::string advertised() const override { return address_; }
  LinkId dial(std::string_view address, Time deadline) override;
  void send(LinkId link, std::span<const std::byte> frame) override;
  void close(LinkId link) override;
  [[nodiscard]] std::vector<LinkEvent> take_events() override;
  [[nodiscard]] int event_fd() const noexcept override { return -1; }

  [[nodiscard]] std::size_t links() const { return peers_.size(); }

 private:
  void post(LinkEvent event);
  void connect(LinkId link, const std::string& address, Time deadline);
  // After a delay, and after whatever this end has sent before on the link.
  void later(LinkId link, std::function<void()> what);
  void end(LinkId link, Status status, const std::string& reason);

  SimNetwork& network_;
  std::string address_;
  struct End {
    SimLinks* owner = nullptr;  // none while dialling
    LinkId link;
  };
  std::map<LinkId, End> peers_;  // the other ends
  std::map<LinkId, Time> last_arrival_;
  std::vector<LinkEvent> events_;
};

}  // namespace verbatim::transport::control
