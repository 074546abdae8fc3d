// RC queue pairs of one worker: made ahead, in INIT, lent to channels, and recycled when they come back. Receives are
// posted by who leases, because he owns their memory; a queue pair in INIT takes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "device/context.hpp"
#include "qp/completion.hpp"
#include "qp/completion_queue.hpp"
#include "qp/local_port.hpp"
#include "qp/protection_domain.hpp"
#include "qp/recycling.hpp"
#include "qp/reliable_queue.hpp"

namespace verbatim::qp {

struct RcPoolSettings {
  std::uint32_t initial = 0;          // made ahead, and kept when nobody needs them
  std::uint32_t max = 0;              // the device may allow fewer
  std::uint32_t send_depth = 0;       // sends, writes and reads of a queue pair that may be outstanding
  std::uint32_t control_slots = 0;    // control messages on top of them
  std::uint32_t receive_slots = 0;    // receives of a queue pair, those for control messages included
  std::uint32_t signal_interval = 1;  // every n-th send asks for a completion
  std::uint32_t inline_bytes = 0;     // asked for; a device that has less gives what it has
  Duration drain_limit{};             // from giving a queue pair back to its last flushed request

  // Completions of one queue pair that may be in the completion queue, a drain's markers included.
  [[nodiscard]] std::uint32_t completion_entries() const { return send_depth + control_slots + receive_slots + 2; }
};

// What became of a queue pair that was given back.
enum class Retirement : std::uint8_t {
  recycled,         // in the pool again
  surplus,          // drained, and destroyed because enough are in the pool
  drain_timed_out,  // destroyed: not everything was flushed in time
  refused,          // destroyed: the device refused a step of the way back to INIT
};

struct Retired {
  Qpn number;
  Retirement how = Retirement::recycled;
  Duration took{};     // since it was given back
  std::string reason;  // of the last two
};

class RcPool {
 public:
  struct Counts {
    std::uint32_t limit = 0;  // queue pairs at most
    std::uint32_t idle = 0;
    std::uint32_t leased = 0;
    std::uint32_t draining = 0;
    std::uint64_t made = 0;  // since the beginning
    std::uint64_t recycled = 0;
    std::uint64_t surplus = 0;
    std::uint64_t drain_timed_out = 0;
    std::uint64_t refused = 0;
    [[nodiscard]] std::uint32_t used() const { return idle + leased + draining; }
  };

  // Makes the initial ones, or as many of them as there is room for. Throws Error: invalid_argument if the settings are
  // more than the device can do, device_failure. All of the arguments by reference must outlive it.
  RcPool(device::Context& context, const ProtectionDomain& domain, CompletionQueue& completion_queue, LocalPort port,
         const RcPoolSettings& settings);
  // What was leased must have come back, or be gone.
  ~RcPool();
  RcPool(const RcPool&) = delete;
  RcPool& operator=(const RcPool&) = delete;

  // One in INIT without anything posted. Throws Error: no_space with used and limit of what is used up (queue pairs,
  // completion queue), device_failure.
  [[nodiscard]] std::unique_ptr<ReliableQueue> lease();
  // Whatever state it is in. What is posted stays the device's until progress() reports it; what ends until then comes
  // out of the completion queue as ever, for whoever posted it.
  void give_back(std::unique_ptr<ReliableQueue> queue, Time now);
  // For each completion of a queue pair that is not leased. True: it was a marker of a drain.
  bool on_completion(const WorkCompletion& completion);
  // Goes on with what was given back; those that are through, and how.
  [[nodiscard]] std::vector<Retired> progress(Time now) {
    return returned_.empty() ? std::vector<Retired>{} : retire(now);
  }
  // For a Recycling of a queue pair that its owner keeps.
  [[nodiscard]] std::uint32_t next_drain_round() noexcept { return ++drain_round_; }
  // When progress() has something to do though nothing completes: `never` if nothing is draining.
  [[nodiscard]] Time deadline() const noexcept;

  [[nodiscard]] Counts counts() const noexcept;

 private:
  struct Returned {
    std::unique_ptr<ReliableQueue> queue;
    Recycling recycling;
  };

  // Whether a queue pair's completions may still be in the completion queue when it is destroyed.
  enum class Leftovers : bool { none, possible };

  void read_limits();
  [[nodiscard]] std::unique_ptr<ReliableQueue> make();
  [[nodiscard]] std::unique_ptr<ReliableQueue> create();
  [[nodiscard]] QueuePair create_queue_pair(std::uint32_t& granted_inline);
  void destroy(std::unique_ptr<ReliableQueue> queue, Leftovers leftovers) noexcept;
  [[nodiscard]] std::vector<Retired> retire(Time now);
  [[nodiscard]] Retired settle(Returned& returned, Time now);
  void replace_lost();
  [[nodiscard]] Error used_up() const;
  [[nodiscard]] Error refused_another(const Error& error) const;

  device::Context& context_;
  const ProtectionDomain& domain_;
  CompletionQueue& completion_queue_;
  LocalPort port_;
  RcPoolSettings settings_;
  std::uint32_t device_limit_ = 0;
  ReceiveChain chain_;
  std::vector<std::unique_ptr<ReliableQueue>> idle_;
  std::vector<Returned> returned_;
  std::uint32_t drain_round_ = 0;
  Counts counts_;  // idle and draining are counted by their lists
};

}  // namespace verbatim::qp
