#include "device/soft/sim/network.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "device/pages.hpp"
#include "device/soft/default_gids.hpp"
#include "device/soft/sim/sim_wire.hpp"
#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft {
namespace {

class SimClock final : public Clock {
 public:
  explicit SimClock(const VirtualClock& clock) : clock_(clock) {}
  [[nodiscard]] Time now() const override { return clock_.now(); }

 private:
  const VirtualClock& clock_;
};

// Everything is in one process: memory is memory, and step() keeps the engine going while an application waits.
class SimEdge final : public Edge {
 public:
  explicit SimEdge(std::function<void()> on_close) : on_close_(std::move(on_close)) {}
  ~SimEdge() override { on_close_(); }
  device::Memory allocate(std::size_t bytes) override { return device::map_pages(bytes); }
  void release(device::Memory memory) override { device::unmap_pages(memory); }
  void application_sleeps() override {}
  void due_by(Time) override {}

 private:
  std::function<void()> on_close_;
};

}  // namespace

SimNetwork::SimNetwork(const Options& options) : options_(options) {}

bool SimNetwork::GidLess::operator()(const ibv_gid& a, const ibv_gid& b) const {
  return std::memcmp(a.raw, b.raw, sizeof(a.raw)) < 0;
}

Time SimNetwork::Member::next_event() const {
  return std::min(context->next_deadline(), wire->next_arrival());
}

Time SimNetwork::next_event() const {
  Time next = never;
  for (const Member& member : members_) next = std::min(next, member.next_event());
  return next;
}

bool SimNetwork::step() {
  const Time next = next_event();
  if (next == never) return false;
  clock_.advance_to(next);
  for (const Member& member : members_) {
    if (member.next_event() <= now()) (void)member.context->progress_for_application();
  }
  return true;
}

void SimNetwork::run_until(Time time) {
  while (next_event() <= time && step()) {
  }
  clock_.advance_to(time);
}

std::unique_ptr<device::Context> open_sim(SimNetwork& network, DeviceConfig config) {
  check(config);
  const std::uint64_t instance = network.next_instance_++;
  fill_default_gids(config, instance);
  if (config.seed == 0) config.seed = network.options_.seed * 0x9e3779b97f4a7c15 + instance;
  auto wire = std::make_unique<SimWire>(network);
  const SimWire& arrivals = *wire;
  auto context = std::make_unique<SoftContext>(SoftContext::Parts{
      .config = std::move(config), .wire = std::move(wire), .clock = std::make_unique<SimClock>(network.clock_)});
  SoftContext& attached = *context;
  context->set_edge(std::make_unique<SimEdge>([&network, &attached] {
    std::erase_if(network.members_, [&](const SimNetwork::Member& member) { return member.context == &attached; });
  }));
  network.members_.push_back({&attached, &arrivals});
  return context;
}

}  // namespace verbatim::soft
