#include "transport/host/tcp_link.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace verbatim::transport::host {
namespace {

std::string words(int problem) {
  return std::generic_category().message(problem);
}

// Handshakes are small messages that are each waited for.
void send_at_once(int socket) {
  const int on = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

TcpLink TcpLink::dial(control::LinkId id, const control::Address& address, Time deadline) {
  TcpLink link(id, true, LinkState::resolving);
  link.target_ = address;
  link.peer_ = control::to_string(address);
  link.dial_deadline_ = deadline;
  return link;
}

TcpLink TcpLink::accept(control::LinkId id, Descriptor socket, const std::string& peer, Time deadline) {
  TcpLink link(id, false, LinkState::connecting);
  link.socket_ = std::move(socket);
  link.peer_ = peer;
  link.start_greeting();
  link.attempt_deadline_ = deadline;
  return link;
}

Time TcpLink::deadline() const noexcept {
  switch (state_) {
    case LinkState::resolving:
      return dial_deadline_;
    case LinkState::pausing:
    case LinkState::connecting:
    case LinkState::greeting:
      return std::min(dial_deadline_, attempt_deadline_);
    case LinkState::closing:
      return attempt_deadline_;
    case LinkState::open:
    case LinkState::closed:
      break;
  }
  return never;
}

// ---- a dial
// ----------------------------------------------------------------------------------------------------------

void TcpLink::resolved(std::vector<SocketAddress> addresses) {
  addresses_ = std::move(addresses);
  next_address_ %= std::max<std::size_t>(addresses_.size(), 1);
}

bool TcpLink::connect(Time now, Random& random) {
  const SocketAddress address = addresses_[next_address_].with_port(target_.port);
  next_address_ = (next_address_ + 1) % addresses_.size();
  state_ = LinkState::connecting;
  attempt_deadline_ = now + longest_attempt;
  socket_ = Descriptor::make(
      [&] { return ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP); });
  if (!socket_) {
    attempt_failed(words(errno), now, random);
    return false;
  }
  // EINTR: the connection is being made all the same (connect(2)); poll() tells of its end.
  if (::connect(socket_.get(), address.data(), address.size()) != 0 && errno != EINPROGRESS && errno != EINTR) {
    attempt_failed(words(errno), now, random);
    return false;
  }
  return true;
}

bool TcpLink::finish_connect(Time now, Random& random) {
  int problem = 0;
  socklen_t bytes = sizeof(problem);
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &problem, &bytes) != 0) problem = errno;
  const auto own = SocketAddress::local_of(socket_.get());
  const auto other = SocketAddress::peer_of(socket_.get());
  if (problem == 0 && !other) problem = ENOTCONN;
  // A port of this host that nobody listens on can be the very one that the kernel gave us: TCP then connects to
  // itself.
  if (problem == 0 && own == other) problem = ECONNREFUSED;
  if (problem != 0) {
    attempt_failed(words(problem), now, random);
    return false;
  }
  start_greeting();
  return true;
}

void TcpLink::start_greeting() {
  send_at_once(socket_.get());
  state_ = LinkState::greeting;
  attempt_deadline_ = never;
  unframer_ = control::Unframer();
  queued_.assign(control::preamble.begin(), control::preamble.end());
  sent_ = 0;
}

void TcpLink::attempt_failed(const std::string& problem, Time now, Random& random) {
  ++attempts_;
  problem_ = problem;
  drop();
  state_ = LinkState::pausing;
  attempt_deadline_ = now + backoff_.pause(random);
}

void TcpLink::retry_now() noexcept {
  state_ = LinkState::resolving;
  attempt_deadline_ = never;
}

std::string TcpLink::why_not_connected() const {
  switch (state_) {
    case LinkState::resolving:
      return fmt::format("the name in {} was not found in time{}{}", peer_,
                         problem_.empty() ? "" : "; before: ", problem_);
    case LinkState::greeting:
      return fmt::format("{} accepted the connection, but said nothing", peer_);
    case LinkState::connecting:
      return fmt::format("{} does not answer{}{}", peer_, problem_.empty() ? "" : "; before: ", problem_);
    default:
      return fmt::format("can't connect to {}, {} times: {}", peer_, attempts_, problem_);
  }
}

// ---- bytes
// -----------------------------------------------------------------------------------------------------------

TcpLink::Received TcpLink::receive() {
  Received received;
  const bool unidentified = unframer_.state() == control::Unframer::State::unidentified;
  std::array<std::byte, 16UL * 1024> buffer;  // not initialized: read() does it
  const auto count = uninterrupted([&] { return ::recv(socket_.get(), buffer.data(), buffer.size(), 0); });
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return received;
  if (count <= 0) {
    received.ended = true;
    received.problem = count == 0 ? peer_ + " closed the connection"
                                  : fmt::format("the connection to {} broke: {}", peer_, words(errno));
    return received;
  }
  if (state_ == LinkState::closing) return received;  // nobody listens any more
  const auto state = unframer_.feed({buffer.data(), static_cast<std::size_t>(count)}, received.frames);
  received.stranger = state == control::Unframer::State::stranger;
  received.ended = received.stranger || state == control::Unframer::State::broken;
  if (received.ended) received.problem = fmt::format("{}: {}", peer_, unframer_.problem());
  if (unidentified && unframer_.state() != control::Unframer::State::unidentified && !received.stranger) {
    received.identified = true;
    if (state_ == LinkState::greeting) state_ = LinkState::open;
  }
  return received;
}

bool TcpLink::send(std::span<const std::byte> frame) {
  if (sent_ == queued_.size()) {
    queued_.clear();
    sent_ = 0;
  }
  control::append_frame(frame, queued_);
  flush();
  if (queued_.size() - sent_ <= max_queued_bytes) return true;
  problem_ =
      fmt::format("{} takes nothing: {} bytes wait for it, {} may", peer_, queued_.size() - sent_, max_queued_bytes);
  return false;
}

void TcpLink::flush() {
  while (sent_ < queued_.size()) {
    const auto count = uninterrupted(
        [&] { return ::send(socket_.get(), queued_.data() + sent_, queued_.size() - sent_, MSG_NOSIGNAL); });
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    sent_ = count < 0 ? queued_.size() : sent_ + static_cast<std::size_t>(count);
  }
  if (state_ == LinkState::closing && !std::exchange(half_shut_, true)) (void)::shutdown(socket_.get(), SHUT_WR);
}

// ---- the end
// ---------------------------------------------------------------------------------------------------------

void TcpLink::start_closing(Time deadline) {
  state_ = LinkState::closing;
  attempt_deadline_ = deadline;
}

void TcpLink::drop() noexcept {
  if (socket_) (void)::shutdown(socket_.get(), SHUT_RDWR);
  socket_.close();
  state_ = LinkState::closed;
}

}  // namespace verbatim::transport::host
