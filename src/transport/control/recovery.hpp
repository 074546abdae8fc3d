// How a channel comes back after its queue pair has failed, at one of its two ends. No I/O, no clock: what happens
// comes in, what is to be done comes out. Both ends run the same machine; whoever notices first begins.
//
//   steady ──failure, or the peer's rehandshake──▶ draining   (queue pair to ERR, until nothing of it is on the way)
//   draining ──drained──▶ pausing ──time──▶ preparing          (no pause at the first attempt)
//   preparing ──queue pair in INIT, its receives posted──▶ offered      -- rehandshake -->
//   offered ──the peer's rehandshake──▶ connecting             (INIT → RTR → RTS)
//   connecting ──connected──▶ readying                         -- reconnected -->
//   readying ──the peer's reconnected──▶ steady                (resume)
//   any ──deadline, or too many attempts──▶ lost
//
// Each attempt is an epoch. Who begins takes the next number; of two that begin at once both take the same, and each
// one's rehandshake is the other's answer. A message of an older epoch says nothing any more. One of a newer epoch
// tells that the peer has begun again, and so does this end.
//
// Nobody sends before the other can receive: `reconnected` leaves in RTS. Nothing of the old queue pair touches memory
// once the new one is offered: the old one has been drained first, at both ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "transport/control/backoff.hpp"
#include "transport/control/messages.hpp"
#include "transport/control/offer.hpp"

namespace verbatim::transport::control {

enum class RecoveryState : std::uint8_t { steady, draining, pausing, preparing, offered, connecting, readying, lost };
[[nodiscard]] const char* to_string(RecoveryState state) noexcept;

namespace recovery {
struct Drain {};    // give up the queue pair, and answer with on_drained() when nothing touches memory for it any more
struct Prepare {};  // another one, in INIT, its receives posted; answer with on_prepared() or on_failure()
struct Connect {    // to RTR and RTS; answer with on_connected() or on_failure()
  Agreement agreement;
};
struct Say {
  Epoch epoch;
  std::variant<Rehandshake, Reconnected> content;
};
struct Resume {  // send again from the frame on that the peer has not taken
  std::uint32_t next_expected_by_peer = 0;
  // For the log: what failed last, how many queue pairs it took, and how long.
  std::string why;
  std::uint32_t attempts = 0;
  Duration took{};
};
struct Lose {  // the last action
  std::string sentence;
};
}  // namespace recovery
using RecoveryAction = std::variant<recovery::Drain, recovery::Prepare, recovery::Connect, recovery::Say,
                                    recovery::Resume, recovery::Lose>;
using RecoveryActions = std::vector<RecoveryAction>;

class Recovery {
 public:
  struct Limits {
    std::uint32_t attempts = 1;      // in a row, none of which moved anything
    Duration deadline = Duration{};  // from a failure to the resumption
  };

  Recovery(Role role, const Limits& limits, Random random);

  // The queue pair in use has failed. `progress`: any number that is another if the channel moved something meanwhile.
  [[nodiscard]] RecoveryActions on_failure(const std::string& why, std::uint64_t progress, Time now);
  [[nodiscard]] RecoveryActions on_drained(Time now);
  [[nodiscard]] RecoveryActions on_prepared(const Offer& own, std::uint32_t next_expected);
  [[nodiscard]] RecoveryActions on_connected(Time now);
  [[nodiscard]] RecoveryActions on_message(const Message& message, std::uint64_t progress, Time now);
  [[nodiscard]] RecoveryActions on_tick(Time now);

  [[nodiscard]] RecoveryState state() const noexcept { return state_; }
  // Of the queue pair in use, or of the one that is being made.
  [[nodiscard]] Epoch epoch() const noexcept { return epoch_; }
  // When on_tick() has something to do.
  [[nodiscard]] Time next_tick() const noexcept;

 private:
  [[nodiscard]] RecoveryActions begin(Epoch epoch, std::uint64_t progress, Time now);
  [[nodiscard]] RecoveryActions answer_peer();
  [[nodiscard]] RecoveryActions resume(Time now);
  [[nodiscard]] RecoveryActions lose(std::string sentence);

  static constexpr Duration first_pause = std::chrono::milliseconds(1);
  static constexpr Duration longest_pause = std::chrono::milliseconds(500);

  Role role_;
  Limits limits_;
  Random random_;
  RecoveryState state_ = RecoveryState::steady;
  Epoch epoch_{1};
  Backoff backoff_{first_pause, longest_pause};
  std::uint32_t attempts_ = 0;
  std::uint64_t progress_ = 0;  // at the last failure
  std::string why_;
  Time began_{};
  Time deadline_ = never;
  Time prepare_at_ = never;
  std::optional<Offer> own_;
  std::optional<Rehandshake> peer_;  // … of this epoch
  bool peer_connected_ = false;      // … in this epoch
};

}  // namespace verbatim::transport::control
