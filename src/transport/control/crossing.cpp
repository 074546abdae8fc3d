#include "transport/control/crossing.hpp"

#include <algorithm>

namespace verbatim::transport::control {

std::optional<Session> Crossing::on_identified(Session dial, const Identity& peer) {
  if (peer == self_) return std::nullopt;  // a worker that dials itself has two ends of one channel, and no crossing
  const auto other = std::find_if(incoming_.begin(), incoming_.end(),
                                  [&](const Incoming& in) { return in.peer == peer && in.can_be_taken_over; });
  if (other != incoming_.end()) {
    other->can_be_taken_over = false;
    return other->session;
  }
  dials_.push_back({dial, peer, Session{}, false});
  return std::nullopt;
}

Crossing::Decision Crossing::on_request(Session incoming, const Identity& peer) {
  const auto oldest = [&](auto&& fits) {
    return std::find_if(dials_.begin(), dials_.end(),
                        [&](const Dial& dial) { return dial.peer == peer && fits(dial); });
  };
  const auto under_way = [](const Dial& dial) { return dial.yields_to == Session{}; };
  if (self_ < peer) {
    const auto winner = oldest([&](const Dial& dial) { return under_way(dial) && !dial.won; });
    if (winner != dials_.end()) {
      winner->won = true;
      return {Verdict::refuse, winner->session};
    }
  } else if (peer < self_) {
    auto loser = oldest([&](const Dial& dial) { return dial.yields_to == incoming; });
    if (loser == dials_.end()) loser = oldest(under_way);
    if (loser != dials_.end()) {
      const Decision decision{Verdict::serve_dial, loser->session};
      dials_.erase(loser);
      incoming_.push_back({incoming, peer, false});
      return decision;
    }
  }
  incoming_.push_back({incoming, peer, peer != self_});
  return {Verdict::accept, Session{}};
}

bool Crossing::on_crossed(Session dial, Session winner) {
  const auto ours = std::find_if(dials_.begin(), dials_.end(), [&](const Dial& d) { return d.session == dial; });
  if (ours == dials_.end()) return false;
  const bool came_already =
      std::any_of(incoming_.begin(), incoming_.end(), [&](const Incoming& in) { return in.session == winner; });
  if (came_already) {
    dials_.erase(ours);
    return false;
  }
  ours->yields_to = winner;
  return true;
}

void Crossing::on_opened(Session incoming) {
  for (Incoming& in : incoming_) {
    if (in.session == incoming) in.can_be_taken_over = false;
  }
}

void Crossing::forget(Session session) {
  std::erase_if(dials_, [&](const Dial& dial) { return dial.session == session; });
  std::erase_if(incoming_, [&](const Incoming& in) { return in.session == session; });
}

}  // namespace verbatim::transport::control
