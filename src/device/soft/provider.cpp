#include "device/soft/provider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/monotonic_clock.hpp"
#include "base/system_random.hpp"
#include "device/soft/default_gids.hpp"
#include "device/soft/shm/helper.hpp"
#include "device/soft/shm/shm_wire.hpp"
#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft {
namespace {

// A target that computes answers when its helper thread notices: within milliseconds, where the host is not overloaded.
// An ack timeout below that would take a program that computes for a dead one. (Hardware has such a floor too.)
constexpr Duration answer_limit = std::chrono::milliseconds(10);

class ShmEdge final : public Edge {
 public:
  ShmEdge(shm::ShmWire& wire, SoftContext& context)
      : wire_(wire), helper_(wire, [&context] { return context.progress_for_application(); }) {}

  device::Memory allocate(std::size_t bytes) override { return wire_.allocate(bytes); }
  void release(device::Memory memory) override { wire_.deallocate(memory); }
  void application_sleeps() override { helper_.application_sleeps(); }
  void due_by(Time deadline) override { helper_.due_by(deadline); }
  void forked() override {
    wire_.forked();
    helper_.forked();
  }

 private:
  shm::ShmWire& wire_;
  shm::Helper helper_;
};

std::vector<ibv_gid> gids_of(const DeviceConfig& config) {
  std::vector<ibv_gid> gids;
  for (const PortConfig& port : config.ports) {
    for (const GidConfig& entry : port.gids) {
      if (!is_empty(entry.gid)) gids.push_back(entry.gid);
    }
  }
  return gids;
}

class SoftProvider final : public device::Provider {
 public:
  explicit SoftProvider(DeviceConfig config) : config_(std::move(config)) {}

  [[nodiscard]] std::vector<std::string> list() override { return {config_.name}; }

  [[nodiscard]] std::unique_ptr<device::Context> open(std::string_view name) override {
    if (name != config_.name) {
      throw Error(ErrorCode::not_found, fmt::format("no soft device '{}'; there is {}", name, config_.name));
    }
    DeviceConfig config = config_;
    check(config);
    fill_default_gids(config, system_seed());
    if (config.seed == 0) config.seed = system_seed();
    config.min_ack_timeout = std::max(config.min_ack_timeout, answer_limit);
    auto wire = std::make_unique<shm::ShmWire>(config, gids_of(config));
    shm::ShmWire& shm_wire = *wire;
    auto context = std::make_unique<SoftContext>(SoftContext::Parts{
        .config = std::move(config), .wire = std::move(wire), .clock = std::make_unique<MonotonicClock>()});
    context->set_edge(std::make_unique<ShmEdge>(shm_wire, *context));
    return context;
  }

 private:
  DeviceConfig config_;
};

}  // namespace

std::unique_ptr<device::Provider> make_provider(DeviceConfig config) {
  return std::make_unique<SoftProvider>(std::move(config));
}

}  // namespace verbatim::soft
