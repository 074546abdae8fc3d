#include "transport/host/tcp_control.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cassert>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "transport/control/address.hpp"
#include "transport/host/edge.hpp"
#include "transport/host/listener.hpp"
#include "transport/host/mailbox.hpp"
#include "transport/host/resolver.hpp"

namespace verbatim::transport::host {
namespace {

TcpControl::Settings with_resolver(TcpControl::Settings settings) {
  if (settings.resolver == nullptr) settings.resolver = std::make_shared<Resolver>();
  return settings;
}

}  // namespace

struct TcpControl::State {
  State(const Settings& settings, std::atomic<bool>& has_events)
      : mailbox(has_events), edge(with_resolver(settings), mailbox) {}

  pid_t process = ::getpid();
  Mailbox mailbox;
  std::string advertised;
  std::uint64_t last_dialled = 0;  // even numbers are the worker's, odd ones the edge's
  Edge edge;                       // last: its thread uses the rest
};

TcpControl::TcpControl() : TcpControl(Settings{}) {}

TcpControl::TcpControl(const Settings& settings) : state_(std::make_unique<State>(settings, has_events_)) {}

TcpControl::~TcpControl() {
  // The child has no thread to join, perhaps a lock that nobody will ever open, and no right to end the connections.
  if (in_child()) (void)state_.release();
}

bool TcpControl::in_child() const noexcept {
  return state_->process != ::getpid();
}

std::string TcpControl::listen(std::string_view host, std::uint16_t first_port, std::uint16_t last_port) {
  if (in_child()) throw Error(ErrorCode::unsupported, "control links made before fork() can't be used in the child");
  if (!state_->advertised.empty()) {
    throw Error(ErrorCode::invalid_argument, "listening already, on " + state_->advertised);
  }
  Listener listener = open_listener(std::string(host), first_port, last_port, system_look_up);
  state_->advertised = choose_advertised(listener.bound, host_addresses()).to_string();
  state_->mailbox.post(command::Listen{std::move(listener.socket)});
  return listener.bound.to_string();
}

std::string TcpControl::advertised() const {
  return state_->advertised;
}

control::LinkId TcpControl::dial(std::string_view address, Time deadline) {
  const control::Address target = control::parse_address(address);
  const control::LinkId link{state_->last_dialled += 2};
  if (!in_child()) state_->mailbox.post(command::Dial{link, target, deadline});
  return link;
}

void TcpControl::send(control::LinkId link, std::span<const std::byte> frame) {
  assert(!frame.empty() && frame.size() <= control::max_frame_bytes);
  if (!in_child()) state_->mailbox.post(command::Send{link, {frame.begin(), frame.end()}});
}

void TcpControl::close(control::LinkId link) {
  if (!in_child()) state_->mailbox.post(command::Close{link});
}

std::vector<control::LinkEvent> TcpControl::take_events() {
  if (in_child()) return {};
  return state_->mailbox.take_events();
}

int TcpControl::event_fd() const noexcept {
  return state_->mailbox.event_fd();
}

}  // namespace verbatim::transport::host
