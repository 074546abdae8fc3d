// Side a in the test's own process, side b in a child of it, on the machine's clock.
#pragma once

#include "base/monotonic_clock.hpp"
#include "conformance/fabric.hpp"
#include "conformance/local_endpoint.hpp"
#include "conformance/remote_endpoint.hpp"

namespace verbatim::conformance {

class TwoProcessFabric final : public Fabric {
 public:
  explicit TwoProcessFabric(const OpenDevice& open_device)
      : b_([&open_device] { return std::make_unique<LocalEndpoint>(open_device); }), a_(open_device) {}

  Endpoint& a() override { return a_; }
  Endpoint& b() override { return b_; }
  bool wait_until(const std::function<bool()>& predicate, Duration patience) override;
  void advance(Duration duration) override;
  [[nodiscard]] Time now() const override { return clock_.now(); }

 private:
  MonotonicClock clock_;
  RemoteEndpoint b_;  // forks, so it comes before anything opens a device
  LocalEndpoint a_;
};

}  // namespace verbatim::conformance
