#include "transport/control/handshake.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/units.hpp"

namespace verbatim::transport::control {
namespace {

const char* name_of(const Hello&) {
  return "hello";
}
const char* name_of(const ConnectRequest&) {
  return "connect_request";
}
const char* name_of(const ConnectAccept&) {
  return "connect_accept";
}
const char* name_of(Ready) {
  return "ready";
}
const char* name_of(ReadyAck) {
  return "ready_ack";
}

// What is missing, for a deadline that passed.
const char* awaited_in(HandshakeState state) {
  switch (state) {
    case HandshakeState::linking:
      return "a connection to the peer's address";
    case HandshakeState::greeting:
    case HandshakeState::awaiting_hello:
      return "the peer's hello";
    case HandshakeState::awaiting_request:
      return "the peer's connect_request";
    case HandshakeState::preparing:
      return "a queue pair of our own";
    case HandshakeState::connecting:
      return "our own queue pair to be connected";
    case HandshakeState::requested:
      return "the peer's connect_accept";
    case HandshakeState::accepted:
      return "the peer's ready";
    case HandshakeState::readying:
      return "the peer's ready_ack";
    case HandshakeState::open:
    case HandshakeState::ended:
      break;
  }
  return "nothing";
}

// An acceptor opens when it hears that the dialler is ready, a dialler when it hears that the acceptor has.
bool peer_may_be_open(HandshakeState state) {
  return state == HandshakeState::readying || state == HandshakeState::open;
}

}  // namespace

const char* to_string(HandshakeState state) noexcept {
  switch (state) {
    case HandshakeState::linking:
      return "linking";
    case HandshakeState::greeting:
      return "greeting";
    case HandshakeState::requested:
      return "requested";
    case HandshakeState::readying:
      return "readying";
    case HandshakeState::awaiting_hello:
      return "awaiting_hello";
    case HandshakeState::awaiting_request:
      return "awaiting_request";
    case HandshakeState::accepted:
      return "accepted";
    case HandshakeState::preparing:
      return "preparing";
    case HandshakeState::connecting:
      return "connecting";
    case HandshakeState::open:
      return "open";
    case HandshakeState::ended:
      return "ended";
  }
  return "unknown";
}

Handshake::Handshake(const Settings& settings, Role role, HandshakeState state, Session session, Time deadline)
    : settings_(settings), role_(role), state_(state), session_(session), deadline_(deadline) {}

Handshake Handshake::dial(const Settings& settings, Session session, Time deadline) {
  return {settings, Role::dialler, HandshakeState::linking, session, deadline};
}

Handshake Handshake::accept(const Settings& settings, Time now) {
  return {settings, Role::acceptor, HandshakeState::awaiting_hello, Session{}, now + settings.handshake_timeout};
}

Time Handshake::deadline() const noexcept {
  return state_ == HandshakeState::open || state_ == HandshakeState::ended ? never : deadline_;
}

SendFrame Handshake::say(const decltype(Message::content)& content) const {
  return {encode({session_, epoch_, content})};
}

// ---- what happens
// ----------------------------------------------------------------------------------------------------

Actions Handshake::on_link_up() {
  if (state_ != HandshakeState::linking) return {};
  state_ = HandshakeState::greeting;
  return {say(settings_.hello)};
}

Actions Handshake::on_link_closed(Status status, const std::string& reason) {
  if (state_ == HandshakeState::ended) return {};
  const HandshakeState before = std::exchange(state_, HandshakeState::ended);
  // In `linking` the links themselves have tried again until the deadline.
  return {Ended{
      .status = status, .sentence = reason, .retry = before != HandshakeState::linking && !peer_may_be_open(before)}};
}

Actions Handshake::on_frame(std::span<const std::byte> frame, Time now) {
  if (state_ == HandshakeState::ended) return {};
  const auto decoded = decode(frame);
  if (const auto* wrong = std::get_if<Undecodable>(&decoded))
    return give_up({wrong->reason, Session{}, wrong->sentence});
  return receive(std::get<Message>(decoded), now);
}

Actions Handshake::on_queue_pair(const Offer& own) {
  if (state_ != HandshakeState::preparing) return {};
  own_offer_ = own;
  if (role_ == Role::acceptor) return connect();
  state_ = HandshakeState::requested;
  return {say(ConnectRequest{own})};
}

Actions Handshake::on_queue_pair_connected() {
  if (state_ != HandshakeState::connecting) return {};
  if (role_ == Role::acceptor) {
    state_ = HandshakeState::accepted;
    return {say(ConnectAccept{*own_offer_})};
  }
  state_ = HandshakeState::readying;
  return {say(Ready{})};
}

Actions Handshake::give_up(const Refusal& refusal) {
  if (state_ == HandshakeState::ended) return {};
  const HandshakeState before = std::exchange(state_, HandshakeState::ended);
  Actions actions;
  // Before a session is known there is nothing that a refusal could be about: the link closes, which says enough.
  if (before != HandshakeState::linking && session_ != Session{}) actions.emplace_back(say(refusal));
  actions.emplace_back(Ended{.status = status_of(refusal.reason), .sentence = refusal.sentence});
  return actions;
}

Actions Handshake::leave() {
  if (state_ != HandshakeState::open)
    return give_up({RefusalReason::canceled, Session{}, "the peer closed the channel"});
  state_ = HandshakeState::ended;
  return {say(Bye{}), Ended{}};
}

Actions Handshake::on_tick(Time now) {
  if (now < deadline()) return {};
  const bool unrequested = state_ == HandshakeState::awaiting_hello || state_ == HandshakeState::awaiting_request;
  const char* bound = unrequested ? "bootstrap.handshake_timeout" : "bootstrap.connect_timeout";
  const Duration bound_time = unrequested ? settings_.handshake_timeout : settings_.connect_timeout;
  return give_up(
      {RefusalReason::timed_out, Session{},
       fmt::format("the {} waited for {} until {} ({}) had passed", role_ == Role::dialler ? "dialler" : "acceptor",
                   awaited_in(state_), bound, format_duration(bound_time))});
}

// ---- messages
// --------------------------------------------------------------------------------------------------------

Actions Handshake::receive(const Message& message, Time now) {
  if (session_ == Session{} && std::holds_alternative<Hello>(message.content)) session_ = message.session;
  if (message.session != session_) {
    return give_up(
        {RefusalReason::violation, Session{},
         fmt::format("a message of session {:016x} on the link of {:016x}", message.session.value, session_.value)});
  }
  if (std::holds_alternative<Rehandshake>(message.content) || std::holds_alternative<Reconnected>(message.content)) {
    return receive_of_recovery(message);
  }
  if (message.epoch != epoch_) {
    return give_up({RefusalReason::violation, Session{},
                    fmt::format("a message of epoch {} in epoch {}", message.epoch.value, epoch_.value)});
  }
  return std::visit(
      [&](const auto& content) -> Actions {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, Refusal>) {
          return on_refusal(content);
        } else if constexpr (std::is_same_v<Content, Bye>) {
          return on_bye();
        } else if constexpr (std::is_same_v<Content, Rehandshake> || std::is_same_v<Content, Reconnected>) {
          return {};
        } else if (!expected(content)) {
          return give_up({RefusalReason::violation, Session{},
                          fmt::format("{} came to the {} while it was {}", name_of(content),
                                      role_ == Role::dialler ? "dialler" : "acceptor", to_string(state_))});
        } else {
          return on(content, now);
        }
      },
      message.content);
}

Actions Handshake::receive_of_recovery(const Message& message) {
  if (state_ != HandshakeState::open) {
    return give_up({RefusalReason::violation, Session{}, "a channel is to be brought back that is not open yet"});
  }
  return {Recover{message}};
}

bool Handshake::expected(const Hello&) const {
  return state_ == (role_ == Role::dialler ? HandshakeState::greeting : HandshakeState::awaiting_hello);
}
bool Handshake::expected(const ConnectRequest&) const {
  return state_ == HandshakeState::awaiting_request;
}
bool Handshake::expected(const ConnectAccept&) const {
  return state_ == HandshakeState::requested;
}
bool Handshake::expected(Ready) const {
  return state_ == HandshakeState::accepted;
}
bool Handshake::expected(ReadyAck) const {
  return state_ == HandshakeState::readying;
}

Actions Handshake::on(const Hello& hello, Time) {
  peer_ = hello;
  if (hello.fingerprint != settings_.hello.fingerprint) {
    return give_up(
        {RefusalReason::mismatch, Session{},
         fmt::format("settings that both must share differ (fingerprint {:016x} against {:016x}): the {} has {}",
                     settings_.hello.fingerprint, hello.fingerprint, role_ == Role::dialler ? "dialler" : "acceptor",
                     describe(settings_.shared))});
  }
  if (role_ == Role::dialler) {
    state_ = HandshakeState::preparing;
    return {PrepareQueuePair{}};
  }
  state_ = HandshakeState::awaiting_request;
  return {say(settings_.hello)};
}

Actions Handshake::on(const ConnectRequest& request, Time now) {
  peer_offer_ = request.offer;
  deadline_ = now + settings_.connect_timeout;
  state_ = HandshakeState::preparing;
  return {PrepareQueuePair{}};
}

Actions Handshake::on(const ConnectAccept& accept, Time) {
  peer_offer_ = accept.offer;
  return connect();
}

Actions Handshake::on(Ready, Time) {
  state_ = HandshakeState::open;
  return {say(ReadyAck{}), Opened{}};
}

Actions Handshake::on(ReadyAck, Time) {
  state_ = HandshakeState::open;
  return {Opened{}};
}

Actions Handshake::on_refusal(const Refusal& refusal) {
  const HandshakeState before = std::exchange(state_, HandshakeState::ended);
  Ended ended{.status = status_of(refusal.reason), .sentence = "refused by the peer: " + refusal.sentence};
  if (refusal.reason == RefusalReason::crossed && before == HandshakeState::requested) ended.crossed = refusal.winner;
  return {ended};
}

Actions Handshake::on_bye() {
  if (state_ != HandshakeState::open) {
    return give_up({RefusalReason::violation, Session{}, "bye came before the channel was open"});
  }
  state_ = HandshakeState::ended;
  return {Ended{.status = Status::ok, .sentence = "closed by the peer"}};
}

Actions Handshake::connect() {
  auto agreed = agree(*own_offer_, *peer_offer_, role_);
  if (const std::string* differs = std::get_if<std::string>(&agreed)) {
    return give_up({RefusalReason::mismatch, Session{}, *differs});
  }
  agreement_ = std::get<Agreement>(agreed);
  state_ = HandshakeState::connecting;
  return {ConnectQueuePair{*agreement_}};
}

}  // namespace verbatim::transport::control
