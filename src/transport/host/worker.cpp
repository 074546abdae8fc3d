// verbatim::Worker: an engine on this host's device, clock and sockets, and how its thread waits.
#include "verbatim/worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "base/monotonic_clock.hpp"
#include "base/system_random.hpp"
#include "device/system.hpp"
#include "transport/control/address.hpp"
#include "transport/engine.hpp"
#include "transport/host/region_state.hpp"
#include "transport/host/tcp_control.hpp"
#include "transport/host/wake_up.hpp"
#include "verbatim/context.hpp"

namespace verbatim {
namespace {

// A restarted process is another one, and so is a forked one.
[[nodiscard]] std::uint64_t incarnation() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static std::uint64_t id = 0;
  const std::lock_guard lock(mutex);
  if (owner != getpid()) {
    owner = getpid();
    id = system_seed() | 1;
  }
  return id;
}

[[nodiscard]] std::uint32_t next_worker_number() {
  static std::atomic<std::uint32_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// Everything a worker stands on, in the order in which it has to be made. Regions keep it alive.
struct WorkerGround {
  explicit WorkerGround(const Config& settings)
      : config(settings),
        system(device::System::of_this_host()),
        selection(device::select(system.list(), device::parse_selection_rule(config.device.name, gid_index(config)))),
        context(system.open(selection)),
        links(
            {.handshake_timeout = config.bootstrap.handshake_timeout, .close_timeout = config.bootstrap.close_timeout}),
        engine({.context = *context,
                .port = qp::read_local_port(*context, selection, config.device.pkey),
                .placement = mem::place_memory(device::find_placement(selection.device, "/sys"),
                                               config.memory.numa_node, config.memory.huge_pages),
                .links = links,
                .clock = clock,
                .identity = {.incarnation = incarnation(), .worker = next_worker_number()},
                .seed = system_seed()},
               config) {}

  [[nodiscard]] static std::optional<std::uint32_t> gid_index(const Config& config) {
    if (config.device.gid_index < 0) return std::nullopt;
    return static_cast<std::uint32_t>(config.device.gid_index);
  }

  Config config;
  MonotonicClock clock;
  device::System system;
  device::Selection selection;
  std::unique_ptr<device::Context> context;
  transport::host::TcpControl links;
  transport::Engine engine;
};

class Worker::State {
 public:
  explicit State(const Config& config)
      : ground(std::make_shared<WorkerGround>(config)),
        wake_up(ground->engine.completion_fd(), ground->links.event_fd()),
        owner(getpid()) {}

  // Progresses until `done`, or until `deadline`. False: the deadline came first.
  template <typename Done>
  bool wait_until(Done&& done, Time deadline) {
    transport::Engine& engine = ground->engine;
    const Config::Worker& how = ground->config.worker;
    Time idle_since = ground->clock.now();
    for (unsigned idle = 0; !done(); ++idle) {
      if (engine.progress() != 0) {
        idle = 0;
        continue;
      }
      if (idle % polls_per_clock != polls_per_clock - 1 && how.wait != WaitMode::event) continue;
      const Time now = ground->clock.now();
      if (now >= deadline) return done();
      if (idle < polls_per_clock) idle_since = now;
      if (how.wait == WaitMode::poll) continue;
      if (how.wait == WaitMode::adaptive && now - idle_since < how.spin) continue;
      sleep_until(std::min(deadline, engine.next_deadline()));
      idle = 0;
    }
    return true;
  }

  void sleep_until(Time until) {
    if (!ground->engine.arm()) return;
    wake_up.sleep(until == never ? longest_sleep : std::clamp(until - ground->clock.now(), Duration{}, longest_sleep));
    ground->engine.wake();
  }

  static constexpr unsigned polls_per_clock = 128;
  static constexpr Duration longest_sleep = std::chrono::seconds(1);

  std::shared_ptr<WorkerGround> ground;
  transport::host::WakeUp wake_up;
  pid_t owner;
};

Worker::Worker(Context& context) : state_(std::make_unique<State>(context.config())) {}

Worker::~Worker() {
  if (getpid() != state_->owner) {
    (void)state_.release();  // a forked child: device and peers are the parent's
    return;
  }
  transport::Engine& engine = state_->ground->engine;
  try {
    engine.begin_close();
    const Time deadline = state_->ground->clock.now() + state_->ground->config.bootstrap.close_timeout;
    if (!state_->wait_until([&] { return engine.closed(); }, deadline)) {
      log().warn("worker closed with channels that could not be flushed in time (bootstrap.close_timeout)");
    }
  } catch (const std::exception& error) {
    log().warn("worker not closed in good order: {}", error.what());
  }
  engine.cancel_everything();  // a Region may keep the engine
}

std::string Worker::listen(std::string_view address) {
  const Config::Bootstrap& bootstrap = state_->ground->config.bootstrap;
  const transport::control::Address at = transport::control::parse_listen_address(address);
  const std::string host = at.host.empty() ? bootstrap.host : at.host;
  if (at.port != 0) return state_->ground->links.listen(host, at.port, at.port), state_->ground->links.advertised();
  return state_->ground->links.listen(host, bootstrap.port_first, bootstrap.port_last),
         state_->ground->links.advertised();
}

std::optional<Channel> Worker::accept() {
  transport::Channel* const channel = state_->ground->engine.accept();
  return channel != nullptr ? std::optional(Channel(*channel)) : std::nullopt;
}

Channel Worker::connect(std::string_view address) {
  return Channel(state_->ground->engine.connect(address));
}

bool Worker::wait_open(Channel channel) {
  // The handshake has a deadline of its own, which closes the channel.
  (void)state_->wait_until([&] { return channel.state() != ChannelState::connecting; }, never);
  return channel.state() == ChannelState::open;
}

std::optional<Channel> Worker::wait_accept(std::chrono::nanoseconds timeout) {
  std::optional<Channel> channel;
  (void)state_->wait_until([&] { return (channel = accept()).has_value(); }, state_->ground->clock.now() + timeout);
  return channel;
}

Request Worker::recv(void* data, std::size_t capacity, Tag tag, TagMask mask, ChannelId source) {
  return state_->ground->engine.receive(data, capacity, tag, mask, source);
}

std::optional<Envelope> Worker::probe(Tag tag, TagMask mask, ChannelId source) const {
  return state_->ground->engine.probe(tag, mask, source);
}

bool Worker::cancel(Request& receive) {
  if (receive.record() == nullptr) return false;
  return state_->ground->engine.cancel(static_cast<transport::RequestState&>(*receive.record()));
}

Region Worker::register_memory(void* data, std::size_t bytes) {
  return Region(std::make_shared<Region::State>(state_->ground, state_->ground->engine,
                                                state_->ground->engine.register_memory(data, bytes)));
}

Region Worker::allocate(std::size_t bytes) {
  return Region(
      std::make_shared<Region::State>(state_->ground, state_->ground->engine, state_->ground->engine.allocate(bytes)));
}

unsigned Worker::progress() {
  return state_->ground->engine.progress();
}

const Completion& Worker::wait(const Request& request) {
  (void)state_->wait_until([&] { return request.done(); }, never);
  return request.completion();
}

bool Worker::wait_for(const Request& request, std::chrono::nanoseconds timeout) {
  return state_->wait_until([&] { return request.done(); }, state_->ground->clock.now() + timeout);
}

int Worker::event_fd() const noexcept {
  return state_->wake_up.fd();
}

bool Worker::arm() {
  if (!state_->ground->engine.arm()) return false;
  state_->wake_up.at(state_->ground->engine.next_deadline());
  return true;
}

const WorkerCounters& Worker::counters() {
  return state_->ground->engine.counters();
}

std::string Worker::device() const {
  const qp::LocalPort& port = state_->ground->engine.port();
  return port.device + ":" + std::to_string(port.port.value) + ", GID " + to_string(port.address.gid);
}

}  // namespace verbatim
