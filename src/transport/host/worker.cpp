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
#include "device/placement.hpp"
#include "device/system.hpp"
#include "mem/cores.hpp"
#include "transport/control/address.hpp"
#include "transport/engine.hpp"
#include "transport/host/driving.hpp"
#include "transport/host/progress_thread.hpp"
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
        place(device::find_placement(selection.device, "/sys")),
        links(
            {.handshake_timeout = config.bootstrap.handshake_timeout, .close_timeout = config.bootstrap.close_timeout}),
        engine({.context = *context,
                .port = qp::read_local_port(*context, selection, config.device.pkey),
                .placement = mem::place_memory(place, config.memory.numa_node, config.memory.huge_pages),
                .links = links,
                .clock = clock,
                .identity = {.incarnation = incarnation(), .worker = number},
                .seed = system_seed()},
               config) {}

  [[nodiscard]] static std::optional<std::uint32_t> gid_index(const Config& config) {
    if (config.device.gid_index < 0) return std::nullopt;
    return static_cast<std::uint32_t>(config.device.gid_index);
  }

  [[nodiscard]] int progress_core() const {
    if (config.worker.progress_core >= 0) return config.worker.progress_core;
    const std::vector<int> cores = mem::choose_cores(place);
    return cores[number % cores.size()];
  }

  Config config;
  MonotonicClock clock;
  device::System system;
  device::Selection selection;
  std::unique_ptr<device::Context> context;
  device::Placement place;
  std::uint32_t number = next_worker_number();
  transport::host::TcpControl links;
  transport::Engine engine;
};

class Worker::State {
 public:
  explicit State(const Config& config)
      : ground(std::make_shared<WorkerGround>(config)),
        wake_up({ground->engine.completion_fd(), ground->links.event_fd()}),
        owner(getpid()) {
    if (!config.worker.progress_thread) return;
    thread = std::make_unique<transport::host::ProgressThread>(engine(), ground->links.event_fd(), ground->clock,
                                                               config.worker, ground->progress_core());
  }

  [[nodiscard]] transport::Engine& engine() const noexcept { return ground->engine; }
  [[nodiscard]] Turns& turns() const noexcept { return ground->engine.turns(); }

  // Progresses until `done`, or until `deadline`. False: the deadline came first.
  template <typename Done>
  bool wait_until(Done done, Time deadline) {
    if (thread) return thread->wait_until(done, deadline);
    return transport::host::drive(
        ground->clock, ground->config.worker, deadline, [this] { return engine().progress(); },
        [this](Time until) { sleep_until(std::min(until, engine().next_deadline())); }, done);
  }

  void sleep_until(Time until) {
    using transport::host::longest_sleep;
    if (!engine().arm()) return;
    wake_up.sleep(until == never ? longest_sleep : std::clamp(until - ground->clock.now(), Duration{}, longest_sleep));
    engine().wake();
  }

  std::shared_ptr<WorkerGround> ground;
  transport::host::WakeUp wake_up;
  std::unique_ptr<transport::host::ProgressThread> thread;
  pid_t owner;
};

Worker::Worker(Context& context) : state_(std::make_unique<State>(context.config())) {}

Worker::~Worker() {
  if (getpid() != state_->owner) {
    (void)state_.release();  // a forked child: device and peers are the parent's
    return;
  }
  state_->thread.reset();
  transport::Engine& engine = state_->engine();
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
  const Turns::Look turn(state_->turns());
  transport::Channel* const channel = state_->engine().accept();
  return channel != nullptr ? std::optional(Channel(*channel)) : std::nullopt;
}

Channel Worker::connect(std::string_view address) {
  const Turns::Call turn(state_->turns());
  return Channel(state_->engine().connect(address));
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
  const Turns::Call turn(state_->turns());
  return state_->engine().receive(data, capacity, tag, mask, source);
}

std::optional<Envelope> Worker::probe(Tag tag, TagMask mask, ChannelId source) const {
  const Turns::Look turn(state_->turns());
  return state_->engine().probe(tag, mask, source);
}

bool Worker::cancel(Request& receive) {
  if (receive.record() == nullptr) return false;
  const Turns::Look turn(state_->turns());
  return state_->engine().cancel(static_cast<transport::RequestState&>(*receive.record()));
}

Region Worker::register_memory(void* data, std::size_t bytes) {
  const Turns::Look turn(state_->turns());
  return Region(
      std::make_shared<Region::State>(state_->ground, state_->engine(), state_->engine().register_memory(data, bytes)));
}

Region Worker::allocate(std::size_t bytes) {
  const Turns::Look turn(state_->turns());
  return Region(std::make_shared<Region::State>(state_->ground, state_->engine(), state_->engine().allocate(bytes)));
}

unsigned Worker::progress() {
  const Turns::Call turn(state_->turns());
  return state_->engine().progress();
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
  if (state_->thread) {
    throw Error(
        ErrorCode::invalid_argument,
        "Worker::arm() with worker.progress_thread on: its thread waits for events, and a program has nothing to "
        "wait for but its requests; turn the one off, or don't call the other");
  }
  if (!state_->engine().arm()) return false;
  state_->wake_up.at(state_->engine().next_deadline());
  return true;
}

WorkerCounters Worker::counters() {
  const Turns::Look turn(state_->turns());
  return state_->engine().counters();
}

std::string Worker::device() const {
  const qp::LocalPort& port = state_->engine().port();
  return port.device + ":" + std::to_string(port.port.value) + ", GID " + to_string(port.address.gid);
}

}  // namespace verbatim
