// Bringing a queue pair back to INIT, whatever state it is in, without losing anything that was posted to it: ERR,
// wait until both queues are flushed, RESET, INIT. Never blocks: whoever polls its completion queue drives it.
//
// That a queue is flushed is seen by a marker behind everything else in it, because unsignalled and signalled requests
// alike end in order. Hardware flushes what is posted in ERR. The kernel's software devices look at the receive queue
// only when the state is modified; so ERR is set once more behind the markers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "qp/completion.hpp"
#include "qp/reliable_queue.hpp"

namespace verbatim::qp {

enum class RecyclingState : std::uint8_t {
  draining_both,      // neither marker has come
  draining_sends,     // that of the receive queue has come
  draining_receives,  // that of the send queue has come
  drained,            // everything posted has ended
  in_init,            // as new: post receives and connect
  failed              // no use any more: destroy it
};
[[nodiscard]] const char* to_string(RecyclingState state) noexcept;

class Recycling {
 public:
  // Puts the queue pair in ERR and the markers behind what is posted. From now on nothing else may be posted. `queue`
  // must outlive it. `round` is another one each time, so that no marker from before is taken for one of these. If not
  // both markers have come by now + drain_limit, it has failed.
  Recycling(ReliableQueue& queue, std::uint32_t round, Time now, Duration drain_limit);

  // A completion of this queue pair. The flushed requests' own are for whoever posted them. True: it was a marker.
  bool on_completion(const WorkCompletion& completion);
  // Goes on as far as it can.
  RecyclingState progress(Time now);

  [[nodiscard]] RecyclingState state() const noexcept { return state_; }
  // Of failed: which step, and what the device said.
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }
  // Both markers came: every request posted has ended, and no completion of it is to come.
  [[nodiscard]] bool flushed() const noexcept { return flushed_; }
  [[nodiscard]] Time started() const noexcept { return started_; }
  [[nodiscard]] Time deadline() const noexcept { return started_ + drain_limit_; }

 private:
  [[nodiscard]] RecyclingState start();
  [[nodiscard]] RecyclingState back_to_init();
  [[nodiscard]] Error timed_out() const;
  [[nodiscard]] RecyclingState fail(Error error);

  ReliableQueue* queue_;
  Time started_;
  Duration drain_limit_;
  std::uint32_t round_;
  bool flushed_ = false;
  std::optional<Error> error_;
  RecyclingState state_;
};

}  // namespace verbatim::qp
