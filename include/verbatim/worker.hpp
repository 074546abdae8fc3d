// One thread's progress engine: its channels, what they receive, and how the thread waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "verbatim/channel.hpp"
#include "verbatim/region.hpp"
#include "verbatim/request.hpp"
#include "verbatim/types.hpp"

namespace verbatim {

class Context;

// A message that has come and that no receive has taken yet.
struct Envelope {
  ChannelId source;
  Tag tag;
  std::uint64_t bytes = 0;
};

struct WorkerCounters {
  std::uint64_t pinned_bytes = 0;      // registered with the device, users' regions and cached buffers included
  std::uint64_t unexpected_bytes = 0;  // held for receives to come, now
  std::uint64_t unexpected_peak = 0;
  std::uint64_t progress_calls = 0;
  std::uint64_t rnr_naks = 0;  // the device's own counts: a receiver that ran dry, sent and seen
  std::uint64_t retransmits = 0;
};

// Belongs to one thread at a time: no two calls on it, its channels and its requests may overlap. With
// worker.progress_thread on, a thread of the library's makes progress too; it takes turns with these calls by itself.
class Worker {
 public:
  // Throws Error: not_found (device), permission (worker.progress_core), no_space, device_failure. Channels register
  // their memory when they connect: where the limit on locked memory is too low, the channel closes with no_resources,
  // and its reason_text() names the limit and its value.
  explicit Worker(Context& context);
  // Closes every channel, flushing first, for at most bootstrap.close_timeout, and as long again for the last byes.
  // Requests that have not ended do, as canceled; they may be asked until they are let go.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // -- who to talk to --------------------------------------------------------------------------------------------
  // Listens on "host:port", "host", ":port" or "", which leave the rest to the configuration, and returns the address
  // that peers can connect to. Throws Error: busy (address and port), invalid_argument.
  std::string listen(std::string_view address = {});
  // The next channel that a peer has opened; nothing if there is none now.
  [[nodiscard]] std::optional<Channel> accept();
  // Starts to connect to "host:port". Throws Error(invalid_argument) for what is no address; every other failure closes
  // the channel, with the reason.
  [[nodiscard]] Channel connect(std::string_view address);
  // Progresses until the channel is open or closed, at most bootstrap.connect_timeout. True: it is open.
  bool wait_open(Channel channel);
  // The next peer's channel, opened; nothing when `timeout` has passed.
  [[nodiscard]] std::optional<Channel> wait_accept(std::chrono::nanoseconds timeout);

  // -- messages --------------------------------------------------------------------------------------------------
  // From `source` or from any channel. Done when a message has come whole. Receives are matched in the order of these
  // calls; a message goes to the first that fits. Of a closed channel it ends with the reason; one from any channel
  // waits on, as another may yet connect.
  [[nodiscard]] Request recv(void* data, std::size_t capacity, Tag tag, TagMask mask = exact_tag,
                             ChannelId source = any_source);
  // The first message that such a receive would take now.
  [[nodiscard]] std::optional<Envelope> probe(Tag tag, TagMask mask = exact_tag, ChannelId source = any_source) const;
  // Takes a receive back. False: a message has matched it already, and it will end by itself.
  bool cancel(Request& receive);

  // -- memory ----------------------------------------------------------------------------------------------------
  // Throws Error: permission (the limit on locked memory and its value), invalid_argument, device_failure.
  [[nodiscard]] Region register_memory(void* data, std::size_t bytes);
  // Zeroed memory near the device, registered. Throws Error as above, and no_space.
  [[nodiscard]] Region allocate(std::size_t bytes);

  // -- progress --------------------------------------------------------------------------------------------------
  // Does what can be done without waiting; how many requests ended or messages came. Never a system call unless
  // something must be set up or torn down.
  unsigned progress();
  // Progresses until the request is done, waiting as the configuration says.
  const Completion& wait(const Request& request);
  // The same for at most `timeout`; false: not done yet.
  bool wait_for(const Request& request, std::chrono::nanoseconds timeout);

  // For event loops: arm(), and if it returns true sleep until the descriptor is readable; then progress(). arm()
  // returns false when there is work already, and always while a peer writes into a ring of this worker's, which only
  // worker.wait = "poll" allows. Throws Error(invalid_argument) with worker.progress_thread on, whose thread waits
  // instead.
  [[nodiscard]] int event_fd() const noexcept;
  [[nodiscard]] bool arm();

  [[nodiscard]] WorkerCounters counters();
  [[nodiscard]] std::string device() const;  // "soft0:1, GID …": what it runs on

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace verbatim
