// Two workers that dial each other at the same moment get one connection. This decides which dial goes on; it knows
// sessions and identities, neither links nor time.
//
// Until a dial has sent its request it can give way to whatever comes from the same peer: it takes it over. Once both
// requests are on the way, the dial of the lower identity wins at both ends, whatever arrives first where:
//   - the lower end answers the other's request with "crossed", naming its own dial, which goes on;
//   - the higher end serves the lower one's request with the connection that it was dialling for, and drops its dial.
// A dial that the peer has accepted crosses with nothing any more: what the peer dials then is another connection. A
// dial wins against one other at most, so that n dials against m make max(n, m) connections.
#pragma once

#include <optional>
#include <vector>

#include "transport/control/identity.hpp"

namespace verbatim::transport::control {

class Crossing {
 public:
  explicit Crossing(const Identity& self) : self_(self) {}

  // Our dial `session` has learnt who answers. A session: an incoming one of that peer, not open yet, that the dial
  // takes over instead of sending its request. Nothing: send the request.
  [[nodiscard]] std::optional<Session> on_identified(Session dial, const Identity& peer);

  // A peer's request.
  enum class Verdict { accept, serve_dial, refuse };
  struct Decision {
    Verdict verdict = Verdict::accept;
    Session dial;  // serve_dial: ours that becomes this one, and is forgotten; refuse: ours that wins
  };
  [[nodiscard]] Decision on_request(Session incoming, const Identity& peer);

  // The peer says that its dial `winner` goes on instead of ours. True: it is yet to come, wait for its request. False:
  // it has come already for another connection; our dial is forgotten, dial again.
  [[nodiscard]] bool on_crossed(Session dial, Session winner);

  // An incoming session is open: no dial takes it over any more.
  void on_opened(Session incoming);
  // The peer accepted our dial, or a session ended. Unknown ones are ignored.
  void forget(Session session);

 private:
  struct Dial {
    Session session;
    Identity peer;
    Session yields_to;  // crossed: waits for this one
    bool won = false;
  };
  struct Incoming {
    Session session;
    Identity peer;
    bool can_be_taken_over = false;  // neither open nor serving a dial of ours
  };

  Identity self_;
  std::vector<Dial> dials_;         // requested and not accepted yet, oldest first
  std::vector<Incoming> incoming_;  // all that have not ended, oldest first
};

}  // namespace verbatim::transport::control
