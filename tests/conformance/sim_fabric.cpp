// Two soft devices in this process under one virtual clock: the same seed, the same run.
#include "conformance/fabric.hpp"
#include "conformance/local_endpoint.hpp"
#include "device/soft/sim/network.hpp"

namespace verbatim::conformance {

namespace {

class SimFabric final : public Fabric {
 public:
  Endpoint& a() override { return a_; }
  Endpoint& b() override { return b_; }

  bool wait_until(const std::function<bool()>& predicate, Duration patience) override {
    const Time deadline = network_.now() + patience;
    while (!predicate()) {
      // When nothing is due any more, nothing will change.
      if (network_.now() > deadline || !network_.step()) return predicate();
    }
    return true;
  }

  void advance(Duration duration) override { network_.run_for(duration); }
  [[nodiscard]] Time now() const override { return network_.now(); }

 private:
  // Limits that a case can reach: a port below the largest MTU, and messages of a size that a test can afford.
  std::unique_ptr<device::Context> open() {
    soft::DeviceConfig config;
    config.ports.front().active_mtu = IBV_MTU_2048;
    config.limits.max_msg_bytes = 8 << 20;
    return soft::open_sim(network_, config);
  }

  soft::SimNetwork network_;  // outlives its devices
  LocalEndpoint a_{[this] { return open(); }};
  LocalEndpoint b_{[this] { return open(); }};
};

}  // namespace

std::unique_ptr<Fabric> make_fabric() {
  return std::make_unique<SimFabric>();
}

std::optional<std::string> why_no_fabric() {
  return std::nullopt;
}

}  // namespace verbatim::conformance
