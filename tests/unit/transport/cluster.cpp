#include "cluster.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/error.hpp"

namespace verbatim::transport::test {

// -- control links --------------------------------------------------------------------------------------------------

void Exchange::send(SimLinks& to, control::LinkEvent event) {
  due_.emplace(clock_.now() + latency, Delivery{&to, std::move(event)});
}

bool Exchange::deliver() {
  bool any = false;
  while (!due_.empty() && due_.begin()->first <= clock_.now()) {
    Delivery delivery = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    delivery.to->events_.push_back(std::move(delivery.event));
    delivery.to->has_events_.store(true);
    any = true;
  }
  return any;
}

SimLinks::~SimLinks() {
  vanish();
  std::erase_if(exchange_.due_, [this](const auto& due) { return due.second.to == this; });
}

void SimLinks::vanish() {
  exchange_.listeners_.erase(address_);
  for (auto& [link, far] : links_) {
    if (far.links == nullptr) continue;
    far.links->links_.erase(far.link);
    exchange_.send(*far.links, {.kind = control::LinkEventKind::closed,
                                .link = far.link,
                                .peer = {},
                                .frame = {},
                                .status = Status::peer_gone,
                                .reason = "the peer's process is gone"});
  }
  links_.clear();
}

std::string SimLinks::listen(std::string_view, std::uint16_t, std::uint16_t) {
  listening_ = true;
  exchange_.listeners_[address_] = this;
  return address_;
}

control::LinkId SimLinks::dial(std::string_view address, Time) {
  const control::LinkId own{exchange_.next_link_++};
  const auto found = exchange_.listeners_.find(std::string(address));
  if (found == exchange_.listeners_.end()) {
    exchange_.send(*this, {.kind = control::LinkEventKind::closed,
                           .link = own,
                           .peer = {},
                           .frame = {},
                           .status = Status::not_connected,
                           .reason = "nobody listens at " + std::string(address)});
    return own;
  }
  SimLinks& other = *found->second;
  const control::LinkId theirs{exchange_.next_link_++};
  links_[own] = {&other, theirs};
  other.links_[theirs] = {this, own};
  exchange_.send(other, {.kind = control::LinkEventKind::accepted,
                         .link = theirs,
                         .peer = address_,
                         .frame = {},
                         .status = Status::ok,
                         .reason = {}});
  exchange_.send(*this, {.kind = control::LinkEventKind::connected,
                         .link = own,
                         .peer = other.address_,
                         .frame = {},
                         .status = Status::ok,
                         .reason = {}});
  return own;
}

void SimLinks::send(control::LinkId link, std::span<const std::byte> frame) {
  const auto found = links_.find(link);
  if (found == links_.end()) return;
  std::vector<std::byte> carried(frame.begin(), frame.end());
  if (exchange_.tamper) exchange_.tamper(carried);
  exchange_.send(*found->second.links, {.kind = control::LinkEventKind::frame,
                                        .link = found->second.link,
                                        .peer = {},
                                        .frame = std::move(carried),
                                        .status = Status::ok,
                                        .reason = {}});
}

void SimLinks::close(control::LinkId link) {
  const auto found = links_.find(link);
  if (found == links_.end()) return;
  const Far far = found->second;
  links_.erase(found);
  far.links->links_.erase(far.link);
  exchange_.send(*far.links, {.kind = control::LinkEventKind::closed,
                              .link = far.link,
                              .peer = {},
                              .frame = {},
                              .status = Status::peer_gone,
                              .reason = "the peer closed the link"});
}

std::vector<control::LinkEvent> SimLinks::take_events() {
  has_events_.store(false);
  return std::exchange(events_, {});
}

// -- the cluster ----------------------------------------------------------------------------------------------------

std::uint64_t Node::counter(const std::string& name) const {
  for (const device::Counter& counter : context->counters(1)) {
    if (counter.name == name) return counter.value;
  }
  throw std::logic_error("the device has no counter " + name);
}

Cluster::Cluster(std::uint64_t seed) : seed_(seed), network_({.seed = seed}) {}

Config Cluster::plain_config() {
  Config config;
  config.worker.wait = WaitMode::poll;
  config.write_queue.enabled = Switch::off;
  config.rc.pool_initial = 1;
  config.memory.registration_cache_bytes = 0;  // watching mappings needs a thread
  return config;
}

Node& Cluster::add(const Config& config, soft::DeviceConfig device) {
  Node& node = nodes_.emplace_back();
  const std::size_t number = nodes_.size();
  device.seed = seed_ * 1000 + number;
  node.context = soft::open_sim(network_, std::move(device));
  node.links = std::make_unique<SimLinks>(exchange_, "node" + std::to_string(number) + ":1");
  (void)node.links->listen({}, 0, 0);
  std::vector<ibv_gid_entry> gids;
  node.context->query_gid_table(gids);
  device::Selection selection;
  selection.device = node.context->name();
  selection.provider = device::ProviderKind::soft;
  selection.port = PortNumber{1};
  selection.gid.entry.index = 1;
  node.engine =
      std::make_unique<Engine>(Engine::Ground{.context = *node.context,
                                              .port = qp::read_local_port(*node.context, selection, config.device.pkey),
                                              .placement = {},
                                              .links = *node.links,
                                              .clock = network_.clock(),
                                              .identity = {.incarnation = number, .worker = 1},
                                              .seed = seed_ + number},
                               config);
  return node;
}

std::pair<Channel*, Channel*> Cluster::connect(Node& a, Node& b) {
  Channel& near = a.engine->connect(b.links->advertised());
  Channel* far = nullptr;
  run_until([&] {
    if (far == nullptr) far = b.engine->accept();
    return near.state() == ChannelState::closed || (far != nullptr && near.state() == ChannelState::open);
  });
  if (near.state() != ChannelState::open) throw std::runtime_error("not connected: " + near.reason_text());
  return {&near, far};
}

bool Cluster::progress_all() {
  bool any = false;
  for (Node& node : nodes_) {
    if (node.engine == nullptr || std::ranges::find(asleep, &node) != asleep.end()) continue;
    any = node.engine->progress() != 0 || any;
  }
  return any;
}

bool Cluster::run_until(const std::function<bool()>& done, Duration patience) {
  const Time deadline = now() + patience;
  for (unsigned quiet = 0;;) {
    if (done()) return true;
    if (now() >= deadline) return false;
    if (progress_all()) {
      quiet = 0;
      continue;
    }
    // A second round, for what the first has only put on a list.
    if (++quiet < 3) continue;
    quiet = 0;
    if (exchange_.deliver()) continue;
    Time next = std::min(deadline, exchange_.next_event());
    for (Node& node : nodes_) {
      if (node.engine != nullptr) next = std::min(next, node.engine->next_deadline());
    }
    if (!network_.step() || now() > next) network_.run_until(next);
    for (Node& node : nodes_) {
      if (node.engine != nullptr) node.engine->wake();
    }
  }
}

void Cluster::run_for(Duration duration) {
  (void)run_until([] { return false; }, duration);
}

}  // namespace verbatim::transport::test
