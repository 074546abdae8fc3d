#include "transport/control/connector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.hpp"

namespace verbatim::transport::control {
namespace {

constexpr Duration first_redial_pause = std::chrono::milliseconds(5);
constexpr Duration longest_redial_pause = std::chrono::milliseconds(500);
constexpr Duration most_ahead = std::chrono::milliseconds(100);

Backoff redial_backoff() {
  return {first_redial_pause, longest_redial_pause};
}

// A worker listens on one port, under whatever name or number of its host. Two numbers that differ are taken for two
// hosts.
bool may_mean_the_same(std::string_view dialled, std::string_view advertised) {
  if (dialled == advertised) return true;
  if (advertised.empty()) return false;
  const auto port = [](std::string_view address) { return address.substr(address.rfind(':') + 1); };
  const bool is_name = dialled.find_first_not_of("0123456789.:") != std::string_view::npos && dialled.front() != '[';
  return is_name && port(dialled) == port(advertised);
}

}  // namespace

Connector::Connector(const Settings& settings, ControlLinks& links, Random random)
    : settings_(settings),
      handshake_settings_{
          .hello = {.sender = settings.self, .fingerprint = fingerprint(settings.shared), .address = {}},
          .shared = settings.shared,
          .handshake_timeout = settings.handshake_timeout,
          .connect_timeout = settings.connect_timeout},
      links_(links),
      random_(random),
      crossing_(settings.self) {}

// ---- what the owner calls
// --------------------------------------------------------------------------------------------

ConnectionId Connector::connect(std::string_view address, Time now) {
  now_ = now;
  Connection& connection = add_connection(std::string(address), true);
  connection.deadline = now + settings_.connect_timeout;
  const ConnectionId id = connection.id;
  try {
    dial(connection);
  } catch (...) {
    connections_.erase(id);
    throw;
  }
  next_deadline_ = std::min(next_deadline_, connection.deadline);
  return id;
}

void Connector::queue_pair_prepared(ConnectionId id, const Offer& own) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  connection->offer = own;
  if (Talk* talk = talk_of(*connection)) carry_out(connection->link, talk->handshake.on_queue_pair(own));
}

void Connector::queue_pair_connected(ConnectionId id) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  if (Talk* talk = talk_of(*connection)) carry_out(connection->link, talk->handshake.on_queue_pair_connected());
}

void Connector::give_up(ConnectionId id, RefusalReason reason, const std::string& sentence) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  if (Talk* talk = talk_of(*connection))
    send_only(connection->link, talk->handshake.give_up({reason, Session{}, sentence}));
  forget(*connection);
}

void Connector::send(ConnectionId id, Epoch epoch, const decltype(Message::content)& content) {
  if (const Connection* connection = find(id))
    links_.send(connection->link, encode({connection->session, epoch, content}));
}

void Connector::close(ConnectionId id) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  if (Talk* talk = talk_of(*connection)) send_only(connection->link, talk->handshake.leave());
  forget(*connection);
}

std::vector<Step> Connector::progress(Time now) {
  now_ = now;
  if (links_.has_events()) {
    for (const LinkEvent& event : links_.take_events()) on_event(event);
  }
  if (now >= next_deadline_) pass_deadlines();
  show_what_was_held();
  next_deadline_ = earliest_deadline();
  return std::exchange(steps_, {});
}

// ---- bookkeeping
// -----------------------------------------------------------------------------------------------------

Connector::Connection& Connector::add_connection(std::string peer_address, bool dialled) {
  const ConnectionId id{++last_connection_};
  return connections_
      .emplace(id, Connection{.id = id,
                              .peer_address = std::move(peer_address),
                              .dialled = dialled,
                              .session = {},
                              .link = {},
                              .backoff = redial_backoff(),
                              .offer = {}})
      .first->second;
}

Connector::Connection* Connector::find(ConnectionId id) {
  if (const auto now_known_as = taken_over_.find(id); now_known_as != taken_over_.end()) id = now_known_as->second;
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

Connector::Connection* Connector::find(Session session, bool dialled) {
  for (auto& [id, connection] : connections_) {
    if (connection.session == session && connection.dialled == dialled) return &connection;
  }
  return nullptr;
}

Connector::Talk* Connector::talk_of(const Connection& connection) {
  const auto talk = talks_.find(connection.link);
  return talk == talks_.end() ? nullptr : &talk->second;
}

void Connector::drop(LinkId link) {
  if (talks_.erase(link) > 0) links_.close(link);
}

void Connector::forget(const Connection& connection) {
  crossing_.forget(connection.session);
  drop(connection.link);
  std::erase_if(taken_over_, [&](const auto& entry) { return entry.second == connection.id; });
  connections_.erase(ConnectionId(connection.id));  // a copy: the reference dies with it
}

Time Connector::earliest_deadline() const {
  Time earliest = never;
  for (const auto& [link, talk] : talks_) earliest = std::min(earliest, talk.handshake.deadline());
  for (const auto& [id, connection] : connections_) {
    if (connection.link == LinkId{}) earliest = std::min({earliest, connection.deadline, connection.redial_at});
    earliest = std::min(earliest, connection.hold_until);
  }
  return earliest;
}

// ---- links
// -----------------------------------------------------------------------------------------------------------

void Connector::dial(Connection& connection) {
  handshake_settings_.hello.address = links_.advertised();
  connection.redial_at = never;
  connection.session = Session{random_.bits() | 1};  // 0 is none
  // The links give up a little earlier than the handshake: they know what went wrong.
  const Duration ahead = std::min(settings_.connect_timeout / 16, most_ahead);
  connection.link = links_.dial(connection.peer_address, connection.deadline - ahead);
  talks_.emplace(connection.link, Talk{Handshake::dial(handshake_settings_, connection.session, connection.deadline),
                                       connection.peer_address, connection.id});
}

void Connector::on_event(const LinkEvent& event) {
  if (event.kind == LinkEventKind::accepted) {
    handshake_settings_.hello.address = links_.advertised();
    talks_.emplace(event.link, Talk{Handshake::accept(handshake_settings_, now_), event.peer, ConnectionId{}});
    return;
  }
  const auto found = talks_.find(event.link);
  if (found == talks_.end()) return;  // we closed it meanwhile
  Handshake& handshake = found->second.handshake;
  switch (event.kind) {
    case LinkEventKind::accepted:
      break;
    case LinkEventKind::connected:
      carry_out(event.link, handshake.on_link_up());
      break;
    case LinkEventKind::frame:
      carry_out(event.link, handshake.on_frame(event.frame, now_));
      break;
    case LinkEventKind::closed:
      carry_out(event.link, handshake.on_link_closed(event.status, event.reason));
      break;
  }
}

void Connector::pass_deadlines() {
  std::vector<LinkId> late_links;
  for (const auto& [link, talk] : talks_) {
    if (now_ >= talk.handshake.deadline()) late_links.push_back(link);
  }
  for (LinkId link : late_links) {
    if (const auto talk = talks_.find(link); talk != talks_.end())
      carry_out(link, talk->second.handshake.on_tick(now_));
  }
  std::vector<ConnectionId> unlinked;
  for (const auto& [id, connection] : connections_) {
    if (connection.link == LinkId{}) unlinked.push_back(id);
  }
  for (ConnectionId id : unlinked) {
    Connection& connection = connections_.at(id);
    if (now_ >= connection.deadline) {
      end(connection, {id, Status::timed_out,
                       fmt::format("bootstrap.connect_timeout ({}) passed between two attempts",
                                   format_duration(settings_.connect_timeout)),
                       false});
    } else if (now_ >= connection.redial_at) {
      dial(connection);
    }
  }
}

// ---- what handshakes ask for
// -----------------------------------------------------------------------------------------

void Connector::carry_out(LinkId link, const Actions& actions) {
  for (const Action& action : actions) {
    const auto found = talks_.find(link);
    if (found == talks_.end()) return;
    Talk& talk = found->second;
    std::visit(
        [&](const auto& what) {
          using What = std::decay_t<decltype(what)>;
          if constexpr (std::is_same_v<What, SendFrame>) {
            links_.send(link, what.frame);
          } else if constexpr (std::is_same_v<What, PrepareQueuePair>) {
            on_prepare(link, talk);
          } else if constexpr (std::is_same_v<What, ConnectQueuePair>) {
            on_connect(talk, what.agreement);
          } else if constexpr (std::is_same_v<What, Opened>) {
            on_opened(talk);
          } else if constexpr (std::is_same_v<What, Recover>) {
            on_recover(talk, what.message);
          } else {
            on_ended(link, what);
          }
        },
        action);
  }
}

// For a link that its owner lets go of: nobody is to be told but the peer.
void Connector::send_only(LinkId link, const Actions& actions) {
  for (const Action& action : actions) {
    if (const auto* send = std::get_if<SendFrame>(&action)) links_.send(link, send->frame);
  }
}

void Connector::on_prepare(LinkId link, Talk& talk) {
  if (talk.handshake.role() == Role::acceptor) return on_request(link, talk);
  Connection& connection = connections_.at(talk.connection);
  const auto other = crossing_.on_identified(connection.session, talk.handshake.peer().sender);
  if (Connection* from = other ? find(*other, false) : nullptr) {
    take_over(*from, connection);
  } else {
    ask_for_queue_pair(connection, link, talk);
  }
}

void Connector::on_request(LinkId link, Talk& talk) {
  const Session session = talk.handshake.session();
  const bool repeated = std::any_of(talks_.begin(), talks_.end(), [&](const auto& other) {
    return other.first != link && other.second.handshake.session() == session &&
           other.second.handshake.role() == Role::acceptor && other.second.connection != ConnectionId{};
  });
  if (repeated) {
    carry_out(link, talk.handshake.give_up({RefusalReason::violation, Session{}, "a second request of one session"}));
    return;
  }
  const Crossing::Decision decision = crossing_.on_request(session, talk.handshake.peer().sender);
  switch (decision.verdict) {
    case Crossing::Verdict::refuse:
      send_only(link, talk.handshake.give_up({RefusalReason::crossed, decision.dial,
                                              "both dialled at the same moment; the other dial goes on"}));
      drop(link);
      return;
    case Crossing::Verdict::serve_dial:
      serve(*find(decision.dial, true), link, talk);
      return;
    case Crossing::Verdict::accept: {
      Connection& connection = add_connection(talk.peer_address, false);
      connection.session = session;
      connection.link = link;
      talk.connection = connection.id;
      ask_for_queue_pair(connection, link, talk);
      return;
    }
  }
}

// Our dial has found that its peer's own request is being served already.
void Connector::take_over(Connection& from, Connection& into) {
  drop(into.link);
  into.session = from.session;
  into.link = from.link;
  into.asked_for_queue_pair = from.asked_for_queue_pair;
  into.offer = from.offer;
  talk_of(into)->connection = into.id;
  talk_of(into)->handshake.finish_by(into.deadline);
  const bool is_open = from.hold_until != never;
  taken_over_.emplace(from.id, into.id);
  steps_.emplace_back(step::TakeOver{from.id, into.id});
  connections_.erase(ConnectionId(from.id));
  if (is_open) show(into);
}

// Our dial has lost: its connection becomes the winner's other end.
void Connector::serve(Connection& dialled, LinkId link, Talk& talk) {
  drop(dialled.link);
  dialled.session = talk.handshake.session();
  dialled.link = link;
  dialled.redial_at = never;
  talk.connection = dialled.id;
  talk.handshake.finish_by(dialled.deadline);
  ask_for_queue_pair(dialled, link, talk);
}

void Connector::ask_for_queue_pair(Connection& connection, LinkId link, Talk& talk) {
  next_deadline_ = std::min(next_deadline_, talk.handshake.deadline());
  if (connection.offer) {
    carry_out(link, talk.handshake.on_queue_pair(*connection.offer));
  } else if (!std::exchange(connection.asked_for_queue_pair, true)) {
    steps_.emplace_back(step::Prepare{connection.id});
  }
}

void Connector::on_connect(const Talk& talk, const Agreement& agreement) {
  if (talk.handshake.role() == Role::dialler) crossing_.forget(talk.handshake.session());
  steps_.emplace_back(step::Connect{talk.connection, agreement});
}

void Connector::on_opened(const Talk& talk) {
  Connection& connection = connections_.at(talk.connection);
  if (!may_be_dialled_too(connection)) return show(connection);
  const auto dialled_exactly = [&](const auto& entry) {
    return entry.second.dialled && entry.second.peer_address == talk.handshake.peer().address;
  };
  const bool certain = std::any_of(connections_.begin(), connections_.end(), dialled_exactly);
  connection.hold_until = now_ + (certain ? settings_.connect_timeout : longest_doubt);
}

void Connector::on_recover(const Talk& talk, const Message& message) {
  Connection& connection = connections_.at(talk.connection);
  if (!connection.shown) show(connection);
  steps_.emplace_back(step::Recover{connection.id, message});
}

bool Connector::may_be_dialled_too(const Connection& incoming) {
  if (incoming.dialled) return false;
  const std::string& address = talk_of(incoming)->handshake.peer().address;
  return std::any_of(connections_.begin(), connections_.end(), [&](const auto& entry) {
    const Connection& dial = entry.second;
    return dial.dialled && does_not_know_whom(dial) && may_mean_the_same(dial.peer_address, address);
  });
}

// Whether a dial has yet to learn who answers it.
bool Connector::does_not_know_whom(const Connection& dial) const {
  const auto talk = talks_.find(dial.link);
  if (talk == talks_.end()) return dial.redial_at != never;
  const HandshakeState state = talk->second.handshake.state();
  return state == HandshakeState::linking || state == HandshakeState::greeting;
}

void Connector::show(Connection& connection) {
  const Handshake& handshake = talk_of(connection)->handshake;
  if (handshake.role() == Role::acceptor) crossing_.on_opened(handshake.session());
  connection.shown = true;
  connection.hold_until = never;
  steps_.emplace_back(step::Opened{.connection = connection.id,
                                   .agreement = *handshake.agreement(),
                                   .session = connection.session,
                                   .peer = handshake.peer(),
                                   .peer_address = connection.peer_address,
                                   .incoming = !connection.dialled,
                                   .role = handshake.role()});
}

void Connector::show_what_was_held() {
  for (auto& [id, connection] : connections_) {
    if (connection.hold_until == never) continue;
    if (now_ >= connection.hold_until || !may_be_dialled_too(connection)) show(connection);
  }
}

void Connector::on_ended(LinkId link, const Ended& ended) {
  const Talk& talk = talks_.at(link);
  Connection* connection = find(talk.connection);
  // What came before the end is still to be read.
  if (connection != nullptr && connection->hold_until != never) show(*connection);
  if (connection == nullptr) {
    // Whoever just left is no news.
    if (ended.status != Status::peer_gone && ended.status != Status::ok) {
      steps_.emplace_back(step::Refused{talk.peer_address, ended.sentence});
    }
    return drop(link);
  }
  if (talk.handshake.agreement()) {  // the queue pair has left INIT: no other attempt can use it
    connection->offer.reset();
    connection->asked_for_queue_pair = false;
  }
  drop(link);
  connection->link = LinkId{};
  if (connection->dialled && (ended.retry || ended.crossed)) return dial_lost(*connection, ended);
  end(*connection, {connection->id, ended.status, ended.sentence, connection->shown});
}

void Connector::dial_lost(Connection& connection, const Ended& ended) {
  if (ended.crossed && crossing_.on_crossed(connection.session, *ended.crossed)) return;  // its request will come
  crossing_.forget(connection.session);
  connection.redial_at = now_ + connection.backoff.pause(random_);
  next_deadline_ = std::min(next_deadline_, connection.redial_at);
}

void Connector::end(Connection& connection, const step::Closed& closed) {
  step::Closed& step = std::get<step::Closed>(steps_.emplace_back(closed));
  const bool names_peer = closed.sentence.find(connection.peer_address) != std::string::npos;
  if (!names_peer) step.sentence = connection.peer_address + ": " + closed.sentence;
  forget(connection);
}

}  // namespace verbatim::transport::control
