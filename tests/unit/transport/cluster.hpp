// Workers in one thread on simulated devices, under one virtual clock: the same seed, the same run.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/soft/config.hpp"
#include "device/soft/control.hpp"
#include "device/soft/sim/network.hpp"
#include "transport/control/control_link.hpp"
#include "transport/engine.hpp"

namespace verbatim::transport::test {

class SimLinks;

// Where the links of all nodes meet. A frame takes as long as `latency` says.
class Exchange {
 public:
  explicit Exchange(const Clock& clock) : clock_(clock) {}

  Duration latency = std::chrono::microseconds(50);
  // Changes frames on their way; nothing: they arrive as they are.
  std::function<void(std::vector<std::byte>& frame)> tamper;

  // Hands over what is due; false if nothing was.
  bool deliver();
  [[nodiscard]] Time next_event() const { return due_.empty() ? never : due_.begin()->first; }

 private:
  friend class SimLinks;
  struct Delivery {
    SimLinks* to = nullptr;
    control::LinkEvent event;
  };
  void send(SimLinks& to, control::LinkEvent event);

  const Clock& clock_;
  std::multimap<Time, Delivery> due_;
  std::map<std::string, SimLinks*> listeners_;
  std::uint64_t next_link_ = 1;
};

class SimLinks final : public control::ControlLinks {
 public:
  SimLinks(Exchange& exchange, std::string address) : exchange_(exchange), address_(std::move(address)) {}
  ~SimLinks() override;

  std::string listen(std::string_view host, std::uint16_t first_port, std::uint16_t last_port) override;
  [[nodiscard]] std::string advertised() const override { return listening_ ? address_ : std::string(); }
  control::LinkId dial(std::string_view address, Time deadline) override;
  void send(control::LinkId link, std::span<const std::byte> frame) override;
  void close(control::LinkId link) override;
  [[nodiscard]] std::vector<control::LinkEvent> take_events() override;
  [[nodiscard]] int event_fd() const noexcept override { return -1; }

  // As if the process were gone: the others see their links close.
  void vanish();

 private:
  friend class Exchange;
  struct Far {
    SimLinks* links = nullptr;
    control::LinkId link;
  };
  Exchange& exchange_;
  std::string address_;
  bool listening_ = false;
  std::map<control::LinkId, Far> links_;
  std::vector<control::LinkEvent> events_;
};

struct Node {
  std::unique_ptr<device::Context> context;
  std::unique_ptr<SimLinks> links;
  std::unique_ptr<Engine> engine;

  [[nodiscard]] soft::Control& device() const { return *soft::control_of(*context); }
  [[nodiscard]] std::uint64_t counter(const std::string& name) const;
};

class Cluster {
 public:
  explicit Cluster(std::uint64_t seed = 1);

  // Polls; a write queue is used only where `config` lets it.
  [[nodiscard]] static Config plain_config();

  Node& add(const Config& config = plain_config(), soft::DeviceConfig device = {});
  // From a to b, open at both ends.
  std::pair<Channel*, Channel*> connect(Node& a, Node& b);

  // Everybody makes progress and time goes on until `done`. False if `patience` has passed, or nothing is due any more.
  bool run_until(const std::function<bool()>& done, Duration patience = std::chrono::seconds(30));
  // Until nobody has anything to do before `duration` is over.
  void run_for(Duration duration);

  [[nodiscard]] Time now() const { return network_.now(); }
  // Nodes that don't take part for now: a receiver that is busy elsewhere.
  std::vector<const Node*> asleep;

  soft::SimNetwork& network() { return network_; }
  Exchange& exchange() { return exchange_; }

 private:
  bool progress_all();

  std::uint64_t seed_;
  soft::SimNetwork network_;
  Exchange exchange_{network_.clock()};
  std::deque<Node> nodes_;
};

}  // namespace verbatim::transport::test
