// Two workers on simulated devices.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/soft/sim/network.hpp"
#include "unit/qp/rc_pool/worker.hpp"

namespace verbatim::qp::testing {

class TwoWorkers : public ::testing::Test {
 protected:
  void open(const RcPoolSettings& settings = small_pool(), const soft::DeviceConfig& config_a = {},
            const soft::DeviceConfig& config_b = {}) {
    a.emplace(soft::open_sim(network, config_a), settings);
    b.emplace(soft::open_sim(network, config_b), settings);
  }

  void connect(const Lane& lane, std::uint32_t psn = 1) { qp::testing::connect(*a, *b, lane, psn); }
  Lane connected() {
    Lane lane{a->pool.lease(), b->pool.lease()};
    connect(lane);
    return lane;
  }

  std::vector<WorkCompletion> completions(Worker& worker, std::size_t count) {
    std::vector<WorkCompletion> all;
    const Time patience = network.now() + 1s;
    while (all.size() < count && network.now() < patience) {
      const auto some = worker.poll();
      all.insert(all.end(), some.begin(), some.end());
      if (all.size() < count && !network.step()) break;
    }
    return all;
  }
  // Until the pool has settled what was given back to it.
  std::vector<Retired> retired(Worker& worker) {
    for (int turn = 0; turn < 1000; ++turn) {
      (void)worker.poll();
      auto through = worker.pool.progress(network.now());
      if (!through.empty()) return through;
      network.run_for(1ms);
    }
    ADD_FAILURE() << "nothing came back";
    return {};
  }

  soft::SimNetwork network;
  std::optional<Worker> a;
  std::optional<Worker> b;
};

// The sentence that it throws, if it throws that code.
inline std::string refusal(ErrorCode code, const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace verbatim::qp::testing
