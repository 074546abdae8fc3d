#include "unit/control/sim_links.hpp"

#include <algorithm>
#include <utility>

namespace verbatim::transport::control {

bool SimNetwork::step() {
  if (agenda_.empty()) return false;
  auto next_thing = agenda_.extract(agenda_.begin());
  clock.advance_to(next_thing.key());
  next_thing.mapped()();
  return true;
}

LinkId SimLinks::dial(std::string_view address, Time deadline) {
  const LinkId link{++network_.last_link};
  peers_[link] = {};
  later(link, [this, link, to = std::string(address), deadline] { connect(link, to, deadline); });
  return link;
}

void SimLinks::connect(LinkId link, const std::string& address, Time deadline) {
  if (!peers_.contains(link)) return;
  const auto peer = network_.listening.find(address);
  if (peer == network_.listening.end()) {
    const Time again = network_.clock.now() + std::chrono::milliseconds(50);
    if (again >= deadline) return end(link, Status::timed_out, "nobody listens at " + address);
    network_.at(again, [this, link, address, deadline] { connect(link, address, deadline); });
    return;
  }
  const LinkId other{++network_.last_link};
  peers_[link] = {peer->second, other};
  post({.kind = LinkEventKind::connected, .link = link, .peer = address, .frame = {}, .reason = {}});
  later(link, [this, link, other, to = peer->second] {
    to->peers_[other] = {this, link};
    to->post({.kind = LinkEventKind::accepted, .link = other, .peer = address_, .frame = {}, .reason = {}});
  });
}

void SimLinks::send(LinkId link, std::span<const std::byte> frame) {
  const auto peer = peers_.find(link);
  if (peer == peers_.end() || peer->second.owner == nullptr) return;
  const End to = peer->second;
  if (network_.breaks(address_, frame)) {
    later(link, [to] { to.owner->end(to.link, Status::peer_gone, "the network broke the link"); });
    end(link, Status::peer_gone, "the network broke the link");
    return;
  }
  later(link, [to, bytes = std::vector<std::byte>(frame.begin(), frame.end())] {
    if (!to.owner->peers_.contains(to.link)) return;
    to.owner->post({.kind = LinkEventKind::frame, .link = to.link, .peer = {}, .frame = bytes, .reason = {}});
  });
}

void SimLinks::close(LinkId link) {
  const auto peer = peers_.find(link);
  if (peer == peers_.end()) return;
  if (const End to = peer->second; to.owner != nullptr) {
    later(link, [to] { to.owner->end(to.link, Status::peer_gone, "the peer closed the link"); });
  }
  peers_.erase(link);
}

std::vector<LinkEvent> SimLinks::take_events() {
  has_events_ = false;
  return std::exchange(events_, {});
}

void SimLinks::post(LinkEvent event) {
  events_.push_back(std::move(event));
  has_events_ = true;
}

void SimLinks::later(LinkId link, std::function<void()> what) {
  Time& last = last_arrival_[link];
  last = std::max(last, network_.clock.now() + network_.delay());
  network_.at(last, std::move(what));
}

void SimLinks::end(LinkId link, Status status, const std::string& reason) {
  if (peers_.erase(link) == 0) return;
  post({.kind = LinkEventKind::closed, .link = link, .peer = {}, .frame = {}, .status = status, .reason = reason});
}

}  // namespace verbatim::transport::control
