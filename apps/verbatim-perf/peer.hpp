// The other side, as this one reaches it: a worker, its channel, and waits that end.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <string>

#include "control.hpp"
#include "verbatim/verbatim.hpp"

namespace verbatim::perf {

// Neither side goes this long without a sign of the other while they measure.
inline constexpr std::chrono::seconds patience{20};
// As long as one that is only written to or read from may have to wait for the end of it.
inline constexpr std::chrono::hours passive_patience{1};

class Peer {
 public:
  // `look_after` is called several times a second while this side waits; it throws when there is nothing to wait for.
  // Worker and channel must outlive this.
  Peer(Worker& worker, Channel channel, WaitMode wait, std::function<void()> look_after);

  [[nodiscard]] Worker& worker() { return worker_; }
  [[nodiscard]] Channel channel() const { return channel_; }

  // Until the request has ended well. Throws Error naming `what` if it does not, or not in time.
  void await(const Request& request, const char* what) {
    for (unsigned looks = 0; looks < looks_before_sleep_ && !request.done(); ++looks) worker_.progress();
    if (!request.done()) await_patiently(request, what, patience);
    if (request.completion().status != Status::ok) fail(request.completion(), what);
  }

  // One text message to and fro. Throw Error as above.
  void tell(const std::string& text);
  [[nodiscard]] std::string hear(std::chrono::nanoseconds at_most);

  // Since the channel and the thread began; pinned_bytes now.
  [[nodiscard]] SideUse use();

 private:
  void await_patiently(const Request& request, const char* what, std::chrono::nanoseconds at_most);
  [[noreturn]] void fail(const Completion& completion, const char* what) const;

  Worker& worker_;
  Channel channel_;
  unsigned looks_before_sleep_;
  std::function<void()> look_after_;
  std::array<char, max_text_bytes> text_{};
};

// What was spent between the two; pinned_bytes of the later.
[[nodiscard]] SideUse operator-(const SideUse& later, const SideUse& earlier);

}  // namespace verbatim::perf
