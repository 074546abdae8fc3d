// The side that measures: it takes the plan's points one by one.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/handover.hpp"
#include "exchange.hpp"
#include "options.hpp"
#include "peer.hpp"
#include "result.hpp"

namespace verbatim::perf {

class Leader {
 public:
  // `lines`: where both sides run on this host, else null.
  Leader(Peer& peer, const Options& options, apps::HandoverLines* lines, std::function<void()> look_after)
      : peer_(peer), options_(options), lines_(lines), look_after_(std::move(look_after)) {}

  // Throws Error when something fails on either side, a wrong payload included.
  [[nodiscard]] PointResult measure(const Point& point);
  // The last that the other side hears. With a problem it fails, too.
  void finish(const std::string& problem = {});

 private:
  struct Pace {
    std::uint64_t iterations;
    double elapsed_ns;  // that they took
  };

  // Of the current point.
  [[nodiscard]] Measured run(std::uint64_t iterations);
  [[nodiscard]] Pace warm_up();
  // What disturbed the run before makes this one short: then the count is corrected, and it is run again.
  [[nodiscard]] Measured run_for(Duration duration, Pace pace);

  // What the other side answers. Throws Error if that is a problem.
  Answer ask(const Order& order);
  [[nodiscard]] Yardstick hold_yardstick(const Point& point);

  Peer& peer_;
  const Options& options_;
  apps::HandoverLines* lines_;
  std::function<void()> look_after_;
  std::optional<Exchange> exchange_;  // of the current point
  SideUse before_;                    // its last run
  SideUse after_;
};

}  // namespace verbatim::perf
