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
#include "transport/control/control_link.hpp"
#include "transport/control/crossing.hpp"
#include "transport/control/handshake.hpp"

namespace verbatim::transport::control {

// A connection's number within its Connector; never used twice. 0 is none.
struct ConnectionId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(ConnectionId, ConnectionId) = default;
};

namespace step {
// Lease a queue pair, in INIT, with its receives posted; answer with queue_pair_prepared() or give_up(). A connection
// is asked once: a dial that is repeated, or that turns into an accept because it lost a crossing, keeps its own.
struct Prepare {
  ConnectionId connection;
};
// INIT → RTR → RTS with these values; answer with queue_pair_connected() or give_up().
struct Connect {
  ConnectionId connection;
  Agreement agreement;
};
// `from`, which a peer dialled and which is not open, and `into`, which we dialled and which has no queue pair, are the
// same: the queue pair of `from` (if it was prepared) and all that comes next belong to `into`. `from` is no more.
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
  std::string peer_address;  // as dialled, or where the link came from
  bool incoming = false;     // the peer dialled, and no dial of ours took it over
};
// The connection's last step: it never opened, or it is over. Its queue pair is the owner's to give back.
struct Closed {
  ConnectionId connection;
  Status status = Status::ok;  // ok: the peer said bye
  std::string sentence;
  bool was_open = false;
};
}  // namespace step
using Step = std::variant<step::Prepare, step::Connect, step::TakeOver, step::Opened, step::Closed>;

class Connector {
 public:
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
  // Ends an open connection in good order (bye), or one that is not open (canceled). No Closed step follows.
  void close(ConnectionId connection);

  // Whether progress() has something to do now: one relaxed load and one comparison.
  [[nodiscard]] bool has_work(Time now) const noexcept {
    return links_.has_events() || now >= next_deadline_ || !steps_.empty();
  }
  // Takes the links' events, lets deadlines pass, and returns what the owner is to do, in order. Reports may be made
  // while carrying the steps out; their steps come with the next call (has_work() says so).
  [[nodiscard]] std::vector<Step> progress(Time now);
  // When progress() is due at the latest, events aside.
  [[nodiscard]] Time next_deadline() const noexcept { return next_deadline_; }

 private:
  struct Connection;  // one channel to be
  struct Incoming;    // an accepted link that has not asked for anything yet
};

}  // namespace verbatim::transport::control
