// A worker's progress engine. No threads, no clock and no I/O of its own: the device, the control links and the time
// are handed in. Used by one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/turns.hpp"
#include "device/context.hpp"
#include "mem/placement.hpp"
#include "mem/region.hpp"
#include "mem/registrar.hpp"
#include "mem/registration_cache.hpp"
#include "qp/completion_queue.hpp"
#include "qp/local_port.hpp"
#include "qp/protection_domain.hpp"
#include "qp/rc_pool.hpp"
#include "transport/channel.hpp"
#include "transport/control/connector.hpp"
#include "transport/matcher.hpp"
#include "transport/queue_table.hpp"
#include "transport/requests.hpp"
#include "transport/unexpected_store.hpp"
#include "verbatim/config.hpp"
#include "verbatim/worker.hpp"

namespace verbatim::transport {

class Engine {
 public:
  // What it stands on; all of it must outlive the engine.
  struct Ground {
    device::Context& context;
    qp::LocalPort port;
    mem::MemoryPlacement placement;
    control::ControlLinks& links;
    const Clock& clock;
    control::Identity identity;
    std::uint64_t seed = 0;
  };
  // Throws Error as the parts do.
  Engine(Ground ground, const Config& config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // -- for the user, by way of verbatim::Worker ---------------------------------------------------------------------
  [[nodiscard]] Channel& connect(std::string_view address);
  [[nodiscard]] Channel* accept() noexcept;
  [[nodiscard]] Request receive(void* data, std::size_t capacity, Tag tag, TagMask mask, ChannelId source);
  [[nodiscard]] std::optional<Envelope> probe(Tag tag, TagMask mask, ChannelId source) const;
  bool cancel(RequestState& receive);
  [[nodiscard]] mem::RegisteredRegion register_memory(void* data, std::size_t bytes);
  [[nodiscard]] mem::RegisteredRegion allocate(std::size_t bytes);
  // A user's region is where it stays, until it is forgotten: transfers find it, and atomics may touch it.
  void remember_region(const mem::RegisteredRegion& region);
  void forget_region(const mem::RegisteredRegion& region) noexcept;
  unsigned progress();
  // For whoever shares the engine with another thread; everything else here is for the one whose turn it is.
  [[nodiscard]] Turns& turns() noexcept { return turns_; }
  // Before sleeping: false if there is something to do.
  [[nodiscard]] bool arm();
  // After sleeping.
  void wake();
  [[nodiscard]] int completion_fd() const noexcept { return completions_.fd(); }
  // When progress() is due though nothing happens.
  [[nodiscard]] Time next_deadline() const noexcept;
  [[nodiscard]] const WorkerCounters& counters();
  [[nodiscard]] const qp::LocalPort& port() const noexcept { return ground_.port; }
  // Closes every channel; closed() once they are, and their queue pairs drained.
  void begin_close();
  [[nodiscard]] bool closed() const noexcept;
  // Ends whatever has not ended, as canceled, without telling anybody. Nothing may be asked of it afterwards.
  void cancel_everything() noexcept;

  // -- for channels -------------------------------------------------------------------------------------------------
  // Of everything but receives; and of those, which no flood of sends can use up.
  [[nodiscard]] RequestPool& requests() noexcept { return requests_; }
  [[nodiscard]] RequestPool& receives() noexcept { return receives_; }
  [[nodiscard]] Matcher& matcher() noexcept { return *matcher_; }
  [[nodiscard]] UnexpectedStore& store() noexcept { return store_; }
  // The bytes of a whole message, into a receive that matched it, which ends.
  static void deliver(RequestState& receive, const std::byte* bytes, std::uint64_t count, ChannelId source, Tag tag);
  // Registers a request's buffer, for as long as it holds the lease. False: it can't be now.
  [[nodiscard]] bool lease(RequestState& request, std::uint64_t bytes, mem::Access access);
  [[nodiscard]] bool owns_region(std::uint32_t rkey, std::uint64_t address, std::uint64_t bytes) const noexcept;
  [[nodiscard]] std::optional<mem::RegisteredRegion> allocate_ring(std::size_t bytes, mem::Access access);
  // Nothing if the device promises no order, or max_per_worker are polled already.
  [[nodiscard]] std::optional<mem::RegisteredRegion> allocate_write_queue(Channel& channel);
  void poll_write_queue_of(Channel& channel) { write_queues_.push_back(&channel); }
  [[nodiscard]] std::uint32_t most_eager_bytes() const noexcept { return config_.eager.max_bytes; }
  [[nodiscard]] std::uint64_t promote_after() const noexcept { return promote_after_; }
  [[nodiscard]] std::uint64_t fragment_bytes() const noexcept { return fragment_bytes_; }
  [[nodiscard]] std::uint32_t fragments_on_the_way() const noexcept { return config_.rendezvous.fragments; }
  // Has it pushed before progress() returns, or by the next one.
  void touch(Channel& channel) noexcept {
    if (channel.is_touched) return;
    channel.is_touched = true;
    touched_.push_back(channel);
  }
  // Ends a channel in good order, or gives one up that is not open yet.
  void say_bye(Channel& channel);
  // Nothing comes from this channel any more: receives from it alone end, and its offers are forgotten.
  void forget_source(Channel& channel);

 private:
  void on_completion(const qp::WorkCompletion& completion);
  void take_what_has_come(Channel& channel);
  unsigned poll_write_queues();
  void push_touched();
  void break_off_all();
  void carry_out_control();
  void carry_out(const control::step::Prepare& step);
  void carry_out(const control::step::Connect& step);
  void carry_out(const control::step::TakeOver& step);
  void carry_out(const control::step::Opened& step);
  void carry_out(const control::step::Recover& step);
  void carry_out(const control::step::Closed& step);
  void carry_out(const control::step::Refused& step);
  void retire_queue_pairs();
  // A queue pair in INIT with all its receives posted, and what its channel has done with it. Throw Error.
  void prepare_lane(Channel& channel, std::uint32_t epoch);
  void connect_lane(Channel& channel, const control::Agreement& agreement);
  // recovering.cpp
  [[nodiscard]] bool can_recover(const Channel& channel) const noexcept;
  void fail(Channel& channel);
  void recover(Channel& channel, const control::RecoveryActions& actions);
  void carry_out(Channel& channel, const control::recovery::Drain& action);
  void carry_out(Channel& channel, const control::recovery::Prepare& action);
  void carry_out(Channel& channel, const control::recovery::Connect& action);
  void carry_out(Channel& channel, const control::recovery::Say& action);
  void carry_out(Channel& channel, const control::recovery::Resume& action);
  void carry_out(Channel& channel, const control::recovery::Lose& action);
  void tick_recoveries();
  void shut(Channel& channel, Status status, std::string sentence);
  bool give_lane_back(Channel& channel, Channel* closed);
  [[nodiscard]] Channel& make_channel(std::string peer);
  [[nodiscard]] Channel* channel_of(control::ConnectionId connection) const noexcept;
  [[nodiscard]] control::Offer offer_of(Channel& channel);
  [[nodiscard]] qp::RcConnection connection_of(const Channel& channel, const control::Agreement& agreement) const;

  static constexpr unsigned frames_per_poll = 32;       // of one write queue, before the next is looked at
  static constexpr unsigned completions_per_poll = 64;  // before the write queues are looked at again
  static constexpr unsigned calls_per_clock = 64;       // progress() calls that share a reading of the clock
  static constexpr unsigned calls_per_completions =
      8;  // … with frames from write queues that share a poll; half without

  Ground ground_;
  Config config_;
  Turns turns_;
  std::uint64_t fragment_bytes_;
  std::uint64_t promote_after_;
  Random random_;
  Time now_;
  unsigned calls_since_clock_ = 0;
  unsigned calls_since_completions_ = 0;

  qp::ProtectionDomain domain_;
  mem::PinnedBytes pinned_;
  mem::Registrar registrar_;
  // Given back to the pool, by queue pair: the lane that the device may still write to (so it goes after the pool), and
  // the channel whose requests end with it.
  struct Draining {
    std::unique_ptr<Lane> lane;
    Channel* closed = nullptr;
    Channel* suspended = nullptr;  // which gets another when this one has been drained
  };
  std::unordered_map<std::uint32_t, Draining> draining_;
  qp::CompletionQueue completions_;
  qp::RcPool pool_;
  mem::RegistrationCache cache_;
  RequestPool requests_;
  RequestPool receives_;
  std::unique_ptr<Matcher> matcher_;
  UnexpectedStore store_;
  control::Connector connector_;

  QueueTable queues_;
  std::vector<std::unique_ptr<Channel>> channels_;  // by id - 1; they live as long as the engine
  std::unordered_map<std::uint64_t, Channel*> connections_;
  struct OwnRegion {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  std::unordered_map<std::uint32_t, OwnRegion> regions_;  // by rkey: users' own, for atomics
  std::vector<Channel*> write_queues_;
  bool warned_of_write_queues_ = false;
  std::deque<Channel*> incoming_;
  std::vector<Channel*> recovering_;
  IntrusiveList<Channel, &Channel::touched> touched_;
  WorkerCounters counters_;
};

}  // namespace verbatim::transport
