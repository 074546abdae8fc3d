// All handshakes of one worker: dials and accepts over control links, repeats a dial that was lost, and makes one
// connection of two that cross. Pure: the links, the randomness and the time are handed in; what is to be done with
// queue pairs comes out as steps, which the owner carries out and reports.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "transport/control/backoff.hpp"
#include "transport/control/control_link.hpp"
#include "transport/control/crossing.hpp"
#include "transport/control/handshake.hpp"

namespace verbatim::transport::control {

// A connection's number within its Connector; never used twice. 0 is none.
struct ConnectionId {
  std::uint64_t value = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the defaulted comparison for a literal
  friend constexpr auto operator<=>(ConnectionId, ConnectionId) = default;
};

namespace step {
// Lease a queue pair, in INIT, with its receives posted; answer with queue_pair_prepared() or give_up(). If the
// connection has one already, that one was used up by an attempt that was lost: give it back first.
struct Prepare {
  ConnectionId connection;
};
// INIT → RTR → RTS with these values; answer with queue_pair_connected() or give_up().
struct Connect {
  ConnectionId connection;
  Agreement agreement;
};
// `from`, which a peer dialled and which has not been shown as open, and `into`, which we dialled, are the same: the
// queue pair of `from`, in whatever state, and all that comes next belong to `into`. `into` gives its own back, if it
// has one from an attempt that was lost. `from` is no more.
struct TakeOver {
  ConnectionId from;
  ConnectionId into;
};
// Both sides may send. Messages may have come before.
struct Opened {
  ConnectionId connection;
  Agreement agreement;
  Session session;
  Hello peer;
  std::string peer_address;   // as dialled, or where the link came from
  bool incoming = false;      // the peer dialled, and no dial of ours took it over
  Role role = Role::dialler;  // in the handshake
};
// What the peer of an open connection says while one of its queue pairs is replaced; for its Recovery.
struct Recover {
  ConnectionId connection;
  Message message;
};
// A peer that was turned away before it had a connection, for the log.
struct Refused {
  std::string peer_address;
  std::string sentence;
};
// The connection's last step: it never opened, or it is over. Its queue pair is the owner's to give back.
struct Closed {
  ConnectionId connection;
  Status status = Status::ok;  // ok: the peer said bye
  std::string sentence;
  bool was_open = false;
};
}  // namespace step
using Step = std::variant<step::Prepare, step::Connect, step::TakeOver, step::Opened, step::Recover, step::Closed,
                          step::Refused>;

class Connector {
 public:
  // An incoming connection is not shown while a dial of ours that does not know yet whom it reached could be to the
  // same peer, for then it is the dial's. If the dialled address and the one that the peer gave differ, but could mean
  // the same ("node7:7000", "10.0.0.7:7000"), this long at most.
  static constexpr Duration longest_doubt = std::chrono::seconds(1);

  struct Settings {
    Identity self;
    SharedSettings shared;
    Duration connect_timeout = Duration{};
    Duration handshake_timeout = Duration{};
  };

  // `links` must outlive it.
  Connector(const Settings& settings, ControlLinks& links, Random random);

  // Throws Error(invalid_argument) for what is no address.
  [[nodiscard]] ConnectionId connect(std::string_view address, Time now);

  // What the owner reports. For a connection that has closed meanwhile they do nothing.
  void queue_pair_prepared(ConnectionId connection, const Offer& own);
  void queue_pair_connected(ConnectionId connection);
  // Ends a connection that is not open; the peer is told the sentence. No Closed step follows.
  void give_up(ConnectionId connection, RefusalReason reason, const std::string& sentence);
  // To the peer of an open connection, in `epoch`.
  void send(ConnectionId connection, Epoch epoch, const decltype(Message::content)& content);
  // Ends an open connection in good order (bye), or one that is not open (canceled). No Closed step follows.
  void close(ConnectionId connection);

  // Whether progress() has something to do now: one relaxed load and two comparisons.
  [[nodiscard]] bool has_work(Time now) const noexcept {
    return links_.has_events() || now >= next_deadline_ || !steps_.empty();
  }
  // Takes the links' events, lets deadlines pass, and returns what the owner is to do, in order. Reports may be made
  // while carrying the steps out; their steps come with the next call (has_work() says so).
  [[nodiscard]] std::vector<Step> progress(Time now);
  // When progress() is due at the latest, events aside.
  [[nodiscard]] Time next_deadline() const noexcept { return next_deadline_; }

 private:
  // One channel to be, or one that is open.
  struct Connection {
    ConnectionId id;
    std::string peer_address;
    bool dialled = false;
    Session session;        // of its latest attempt; of its peer's dial, where it gave way to that one
    LinkId link;            // none: between two dials, or until the winner of a crossing comes
    Time deadline = never;  // dialled: for it to be open
    Time redial_at = never;
    Backoff backoff;
    bool asked_for_queue_pair = false;
    std::optional<Offer> offer;
    bool shown = false;       // its Opened step has been made
    Time hold_until = never;  // open, but not shown yet
  };
  // What is said on one link.
  struct Talk {
    Handshake handshake;
    std::string peer_address;
    ConnectionId connection;  // none until an accepted link asks for one
  };

  [[nodiscard]] Connection& add_connection(std::string peer_address, bool dialled);
  [[nodiscard]] Connection* find(ConnectionId id);
  [[nodiscard]] Connection* find(Session session, bool dialled);
  [[nodiscard]] Talk* talk_of(const Connection& connection);

  void dial(Connection& connection);
  void on_event(const LinkEvent& event);
  void carry_out(LinkId link, const Actions& actions);
  void on_prepare(LinkId link, Talk& talk);
  void on_request(LinkId link, Talk& talk);
  void take_over(Connection& from, Connection& into);
  void serve(Connection& dialled, LinkId link, Talk& talk);
  void ask_for_queue_pair(Connection& connection, LinkId link, Talk& talk);
  void on_connect(const Talk& talk, const Agreement& agreement);
  void on_opened(const Talk& talk);
  void on_recover(const Talk& talk, const Message& message);
  void show(Connection& connection);
  void show_what_was_held();
  [[nodiscard]] bool may_be_dialled_too(const Connection& incoming);
  [[nodiscard]] bool does_not_know_whom(const Connection& dial) const;
  void on_ended(LinkId link, const Ended& ended);
  void dial_lost(Connection& connection, const Ended& ended);
  void end(Connection& connection, const step::Closed& closed);
  void forget(const Connection& connection);
  void send_only(LinkId link, const Actions& actions);
  void drop(LinkId link);
  void pass_deadlines();
  [[nodiscard]] Time earliest_deadline() const;

  Settings settings_;
  Handshake::Settings handshake_settings_;
  ControlLinks& links_;
  Random random_;
  Crossing crossing_;
  Time now_{};
  Time next_deadline_ = never;
  std::uint64_t last_connection_ = 0;
  std::map<ConnectionId, Connection> connections_;
  std::map<LinkId, Talk> talks_;
  std::map<ConnectionId, ConnectionId> taken_over_;  // for reports under way under the old number
  std::vector<Step> steps_;
};

}  // namespace verbatim::transport::control
