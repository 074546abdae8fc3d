#include "transport/host/edge.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/signals_blocked.hpp"
#include "base/system_random.hpp"
#include "base/units.hpp"
#include "transport/host/resolver.hpp"

namespace verbatim::transport::host {
namespace {

// What epoll tells us apart by: links by their numbers, and two that no link has.
constexpr std::uint64_t wake_up = 0;
constexpr std::uint64_t listener = ~std::uint64_t{0};

std::string words(int problem) {
  return std::generic_category().message(problem);
}

// accept(2): errors of the connection that was waiting, or of the network on its way, are not the listener's.
bool is_the_listeners_problem(int problem) {
  return problem == EMFILE || problem == ENFILE || problem == ENOBUFS || problem == ENOMEM;
}

}  // namespace

Edge::Edge(const TcpControl::Settings& settings, Mailbox& mailbox)
    : settings_(settings),
      mailbox_(mailbox),
      random_(system_seed()),
      epoll_(Descriptor::make([] { return ::epoll_create1(EPOLL_CLOEXEC); })) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = wake_up}};
  if (!epoll_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, mailbox_.edge_wake()->fd(), &event) != 0) {
    throw Error(ErrorCode::no_space, fmt::format("no epoll descriptor for control links: {}; raise the limit on open "
                                                 "files (ulimit -n)",
                                                 words(errno)));
  }
  const SignalsBlocked no_signals;
  thread_ = std::thread([this] { run(); });
}

Edge::~Edge() {
  mailbox_.post(command::Stop{});
  thread_.join();
}

// ---- the loop
// --------------------------------------------------------------------------------------------------------

void Edge::run() {
  while (true) {
    for (Command& command : mailbox_.take_commands()) carry_out(std::move(command));
    for (std::uint64_t id : std::exchange(resolving_, {})) {
      if (const auto link = links_.find(id); link != links_.end()) advance_dial(link->second);
    }
    if (clock_.now() >= next_deadline_) pass_deadlines();
    if (finished()) return;
    if (mailbox_.full() && stop_at_ == never) {
      wait_for_room();
    } else {
      wait_and_serve();
    }
  }
}

bool Edge::finished() const {
  return stop_at_ != never && (links_.empty() || clock_.now() >= stop_at_);
}

int Edge::milliseconds_to_wait() const {
  const Time until = std::min(next_deadline_, stop_at_);
  if (until == never) return -1;
  const Duration left = until - clock_.now();
  constexpr Duration longest = std::chrono::hours(1);
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(std::clamp(left, Duration(0), longest)).count());
}

// Back-pressure: until the worker has taken its events, peers wait, and TCP with them.
void Edge::wait_for_room() {
  pollfd wake{.fd = mailbox_.edge_wake()->fd(), .events = POLLIN, .revents = 0};
  (void)::poll(&wake, 1, milliseconds_to_wait());
}

void Edge::wait_and_serve() {
  std::array<epoll_event, 64> events;  // not initialized: epoll_wait() does it
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds_to_wait());
  for (int i = 0; i < count; ++i) {
    serve(events[static_cast<std::size_t>(i)].data.u64, events[static_cast<std::size_t>(i)].events);
  }
}

void Edge::serve(std::uint64_t who, std::uint32_t events) {
  if (who == wake_up) return;
  if (who == listener) return accept_waiting();
  const auto found = links_.find(who);
  if (found == links_.end()) return;
  TcpLink& link = found->second;
  if (link.state() == LinkState::connecting) {
    if (!link.finish_connect(clock_.now(), random_)) return note_deadline(link.deadline());
    events = EPOLLOUT;
  }
  if ((events & EPOLLOUT) != 0) send_more(link);
  // Errors and hang-ups are told by recv(), after what the peer has sent before.
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) receive(link);
}

// ---- commands
// --------------------------------------------------------------------------------------------------------

void Edge::carry_out(Command command) {
  std::visit([this](auto& what) { carry_out(std::move(what)); }, command);
}

void Edge::carry_out(command::Listen listen) {
  listener_ = std::move(listen.socket);
  resume_accepting();
}

void Edge::carry_out(const command::Dial& dial) {
  TcpLink& link = links_.emplace(dial.link.value, TcpLink::dial(dial.link, dial.address, dial.deadline)).first->second;
  note_deadline(link.deadline());
  advance_dial(link);
}

void Edge::carry_out(const command::Send& send) {
  const auto found = links_.find(send.link.value);
  if (found == links_.end() || found->second.state() != LinkState::open) return;
  TcpLink& link = found->second;
  if (!link.send(send.frame)) return lose(link, Status::peer_gone, link.problem());
  if (link.has_unsent()) watch(link);
}

void Edge::carry_out(const command::Close& close) {
  const auto found = links_.find(close.link.value);
  if (found == links_.end()) return;
  TcpLink& link = found->second;
  if (link.state() != LinkState::open) return remove(link);
  link.start_closing(clock_.now() + settings_.close_timeout);
  note_deadline(link.deadline());
  send_more(link);
}

void Edge::carry_out(command::Stop) {
  stop_at_ = clock_.now() + settings_.close_timeout;
  listener_.close();
  accept_again_ = never;
  std::vector<control::LinkId> all;
  for (const auto& [id, link] : links_) all.push_back(link.id());
  for (control::LinkId id : all) {
    if (links_.at(id.value).state() != LinkState::closing) carry_out(command::Close{id});
  }
}

// ---- who comes
// -------------------------------------------------------------------------------------------------------

void Edge::accept_waiting() {
  constexpr int at_a_time = 64;  // so that links in use get their turn
  for (int count = 0; count < at_a_time && strangers_ < max_strangers; ++count) {
    if (!accept_one()) return;
  }
  if (strangers_ >= max_strangers) pause_accepting();
}

bool Edge::accept_one() {
  if (!has_descriptors_to_spare()) {
    pollfd somebody{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&somebody, 1, 0) > 0) pause_for_descriptors(EMFILE);
    return false;
  }
  Descriptor socket = Descriptor::make([this] {
    return uninterrupted([&] { return ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
  });
  const int problem = errno;
  if (!socket) {
    if (problem == EAGAIN || problem == EWOULDBLOCK) return false;
    if (!is_the_listeners_problem(problem)) return true;
    pause_for_descriptors(problem);
    return false;
  }
  const Time now = clock_.now();
  const auto address = SocketAddress::peer_of(socket.get());
  const control::LinkId id{next_accepted_};
  next_accepted_ += 2;
  TcpLink accepted = TcpLink::accept(id, std::move(socket), address ? address->to_string() : "a peer that left",
                                     now + settings_.handshake_timeout);
  TcpLink& link = links_.emplace(id.value, std::move(accepted)).first->second;
  ++strangers_;
  note_deadline(link.deadline());
  send_more(link);
  return true;
}

// A new descriptor gets the lowest free number. Whoever is accepted with the last one can't be served: the device and
// the program need some too, if only for a moment.
bool Edge::has_descriptors_to_spare() const {
  const Descriptor probe = Descriptor::make([this] { return ::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0); });
  rlimit limit{};
  if (!probe || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  return static_cast<rlim_t>(probe.get()) + spare_descriptors < limit.rlim_cur;
}

void Edge::pause_for_descriptors(int problem) {
  if (const auto left_out = descriptors_log_.admit(clock_.now())) {
    log().warn("peers wait to connect: {}; raise the limit on open files (ulimit -n)", words(problem));
  }
  pause_accepting();
}

void Edge::pause_accepting() {
  if (!std::exchange(accepting_, false)) return;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  accept_again_ = clock_.now() + accept_pause;
  note_deadline(accept_again_);
}

void Edge::resume_accepting() {
  accept_again_ = never;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = listener}};
  accepting_ = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) == 0;
  if (accepting_) return;
  accept_again_ = clock_.now() + accept_pause;
  note_deadline(accept_again_);
}

// ---- links
// -----------------------------------------------------------------------------------------------------------

void Edge::advance_dial(TcpLink& link) {
  if (link.state() != LinkState::resolving) return;
  const Time now = clock_.now();
  if (const auto number = SocketAddress::numeric(link.target().host, 0)) {
    link.resolved({*number});
  } else {
    const auto answer =
        settings_.resolver->ask(link.target().host, now, [wake = mailbox_.edge_wake()] { wake->set(); });
    if (!answer) return resolving_.push_back(link.id().value);
    if (answer->addresses.empty()) {
      link.attempt_failed(fmt::format("looking up \"{}\": {}", link.target().host, answer->problem), now, random_);
      return note_deadline(link.deadline());
    }
    link.resolved(answer->addresses);
  }
  if (link.connect(now, random_)) watch(link);
  note_deadline(link.deadline());
}

void Edge::receive(TcpLink& link) {
  const TcpLink::Received received = link.receive();
  if (received.identified) {
    if (!link.dialled()) --strangers_;
    mailbox_.post({.kind = link.dialled() ? control::LinkEventKind::connected : control::LinkEventKind::accepted,
                   .link = link.id(),
                   .peer = link.peer(),
                   .frame = {},
                   .reason = {}});
  }
  for (const control::ControlFrame& frame : received.frames) {
    mailbox_.post({.kind = control::LinkEventKind::frame, .link = link.id(), .peer = {}, .frame = frame, .reason = {}});
  }
  if (received.ended) on_end(link, received);
}

void Edge::send_more(TcpLink& link) {
  link.flush();
  watch(link);
}

void Edge::on_end(TcpLink& link, const TcpLink::Received& received) {
  const bool unidentified = link.state() == LinkState::greeting;
  if (received.stranger) {
    if (const auto left_out = strangers_log_.admit(clock_.now())) {
      log().warn("{}; it was dropped, as were {} others since the last such message", received.problem, *left_out);
    }
  }
  if (unidentified && link.dialled() && !received.stranger) {
    link.attempt_failed(received.problem, clock_.now(), random_);
    return note_deadline(link.deadline());
  }
  lose(link, received.stranger ? Status::not_connected : Status::peer_gone, received.problem);
}

// Tells the worker of the end of a link that it knows.
void Edge::lose(TcpLink& link, Status status, const std::string& reason) {
  const bool known = link.state() == LinkState::open || (link.dialled() && link.state() != LinkState::closing);
  if (known) {
    mailbox_.post({.kind = control::LinkEventKind::closed,
                   .link = link.id(),
                   .peer = {},
                   .frame = {},
                   .status = status,
                   .reason = reason});
  }
  remove(link);
}

void Edge::remove(TcpLink& link) {
  if (!link.dialled() && link.state() == LinkState::greeting) --strangers_;
  link.drop();
  links_.erase(link.id().value);
}

void Edge::watch(TcpLink& link) {
  const bool wants_to_send = link.has_unsent() || link.state() == LinkState::connecting;
  epoll_event event{.events = EPOLLIN | (wants_to_send ? EPOLLOUT : 0U), .data = {.u64 = link.id().value}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.socket(), &event) == 0 || errno != ENOENT) return;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, link.socket(), &event);
}

// ---- deadlines
// -------------------------------------------------------------------------------------------------------

void Edge::pass_deadlines() {
  const Time now = clock_.now();
  if (now >= accept_again_) resume_accepting();
  std::vector<std::uint64_t> late;
  for (const auto& [id, link] : links_) {
    if (now >= link.deadline()) late.push_back(id);
  }
  for (std::uint64_t id : late) pass_deadline(links_.at(id));
  next_deadline_ = accept_again_;
  for (const auto& [id, link] : links_) note_deadline(link.deadline());
}

void Edge::pass_deadline(TcpLink& link) {
  const Time now = clock_.now();
  if (link.state() == LinkState::closing) return remove(link);
  if (link.dial_is_over(now)) return lose(link, Status::timed_out, link.why_not_connected());
  switch (link.state()) {
    case LinkState::pausing:
      link.retry_now();
      return advance_dial(link);
    case LinkState::connecting:
      return link.attempt_failed(fmt::format("no answer within {}", format_duration(TcpLink::longest_attempt)), now,
                                 random_);
    case LinkState::greeting:
      return on_silence(link);
    case LinkState::resolving:
    case LinkState::open:
    case LinkState::closing:
    case LinkState::closed:
      return;
  }
}

void Edge::on_silence(TcpLink& link) {
  if (const auto left_out = strangers_log_.admit(clock_.now())) {
    log().warn(
        "{} connected, but did not say who it is within {}; it was dropped, as were {} others since the last such "
        "message",
        link.peer(), format_duration(settings_.handshake_timeout), *left_out);
  }
  remove(link);
}

}  // namespace verbatim::transport::host
