// Many soft devices in one process under one virtual clock: nothing happens until step() is called, and everything
// happens in the same order for the same seed and the same calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "device/context.hpp"
#include "device/soft/config.hpp"
#include "device/soft/engine/wire.hpp"

namespace verbatim::soft {

class SoftContext;
class SimWire;

class SimNetwork {
 public:
  struct Options {
    std::uint64_t seed = 1;
    Duration latency = std::chrono::microseconds(1);  // of every packet
    std::uint32_t train_limit = 1;                    // packets of the path MTU that travel as one
  };

  SimNetwork() : SimNetwork(Options{}) {}
  explicit SimNetwork(const Options& options);
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  [[nodiscard]] Time now() const { return clock_.now(); }
  [[nodiscard]] const VirtualClock& clock() const { return clock_; }

  // Goes on to the next thing that is due anywhere (a packet arrives, a timer runs out) and lets it happen. False if
  // nothing is.
  bool step();
  // Everything due until then, and the clock at that time.
  void run_until(Time time);
  void run_for(Duration duration) { run_until(now() + duration); }

 private:
  friend class SimWire;
  friend std::unique_ptr<device::Context> open_sim(SimNetwork& network, DeviceConfig config);

  struct Member {
    SoftContext* context;
    const SimWire* wire;
    [[nodiscard]] Time next_event() const;
  };
  [[nodiscard]] Time next_event() const;

  struct GidLess {
    bool operator()(const ibv_gid& a, const ibv_gid& b) const;
  };

  Options options_;
  VirtualClock clock_;
  std::vector<Member> members_;
  std::map<ibv_gid, SimWire*, GidLess> owners_;  // who answers to a GID
  std::uint64_t next_instance_ = 1;
};

// A device on the network. It must be closed before the network goes. Ports without GIDs get two made from the
// number of the device on the network: link-local, and routable IPv6; both RoCE v2.
[[nodiscard]] std::unique_ptr<device::Context> open_sim(SimNetwork& network, DeviceConfig config = {});

}  // namespace verbatim::soft
