// The packet engine of one opened soft device: its tables, its queue pairs, and the loop that moves them on.
//
// Pure: no thread, no system call, no clock of its own. The caller holds the engine's lock around every call
// (verbs/engine_lock.hpp) and owns every object it hands in; the engine keeps pointers between `added` and `removed`.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "device/soft/config.hpp"
#include "device/soft/engine/counters.hpp"
#include "device/soft/engine/port.hpp"
#include "device/soft/engine/queue_pair.hpp"
#include "device/soft/engine/regions.hpp"
#include "device/soft/engine/timer_queue.hpp"
#include "device/soft/engine/wire.hpp"

namespace verbatim::soft {

// Where the engine reports what an application waits for. Called under the engine's lock: note it and return.
class EventSink {
 public:
  virtual void completion_event(CompletionQueue& cq) = 0;
  virtual void queue_pair_event(QueuePair& queue_pair, ibv_event_type type) = 0;
  virtual void queue_event(CompletionQueue& cq, ibv_event_type type) = 0;
  virtual void queue_event(SharedReceiveQueue& srq, ibv_event_type type) = 0;
  virtual void port_event(std::uint8_t port, ibv_event_type type) = 0;

 protected:
  ~EventSink() = default;
};

// What the address handle of a datagram was made with; the glue knows how its ibv_ah is laid out.
using AddressOf = const AddressVector& (*)(const ibv_ah& handle);

// What the completion of a receive says.
struct Received {
  ibv_wc_status status = IBV_WC_SUCCESS;
  ibv_wc_opcode opcode = IBV_WC_RECV;
  std::uint32_t bytes = 0;
  std::uint32_t immediate = 0;
  unsigned flags = 0;  // IBV_WC_*
  Qpn source{};        // datagrams
  std::uint8_t service_level = 0;
};

class Engine {
 public:
  // Packets taken in by one progress() at most, so that no call of an application takes long.
  static constexpr std::uint32_t max_packets_per_progress = 64;
  // PSNs that one queue pair may have on the way at most: what a lost packet can cost in sending again.
  static constexpr std::uint32_t max_outstanding_packets = 8192;
  // progress() asks the clock for due timers once in so many calls; run_timers() asks always.
  static constexpr std::uint32_t progress_calls_per_clock = 64;

  Engine(const DeviceConfig& config, Wire& wire, const Clock& clock, EventSink& events);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // -- the loop --------------------------------------------------------------------------------------------------
  // Sends what is owed and takes in packets, until `enough` holds `wanted` completions or nothing is left to do.
  void progress(const CompletionQueue* enough = nullptr, std::uint32_t wanted = UINT32_MAX);
  // Fires every timer that is due.
  void run_timers(Time now);
  // When run_timers() next has something to do; never if nothing runs.
  [[nodiscard]] Time next_deadline() const { return timers.next(); }
  // A transmission is owed that the next progress() will try: an ACK held back for a reply, or something the wire had
  // no room for.
  [[nodiscard]] bool owes_work() const { return !owing_.empty(); }

  // -- queue pairs (queue_pair_states.cpp) -----------------------------------------------------------------------
  // False when max_qp are there. On success queue_pair.qpn is set.
  [[nodiscard]] bool add(QueuePair& queue_pair);
  void remove(QueuePair& queue_pair);
  // 0 or an errno value, as ibv_modify_qp(3).
  int modify(QueuePair& queue_pair, const ibv_qp_attr& attributes, int mask);
  void query(const QueuePair& queue_pair, ibv_qp_attr& attributes) const;
  // To ERR, flushing both queues. Nothing happens in RESET and ERR.
  void enter_error(QueuePair& queue_pair);
  // The queue pair dies of itself, as from an internal error of hardware.
  void kill(QueuePair& queue_pair);
  // The part that is not about packets. What an endless drain held back flushes when the plan no longer asks for it.
  void set_faults(const FaultPlan& plan);

  // -- the data path (posting.cpp) ---------------------------------------------------------------------------------
  int post_send(QueuePair& queue_pair, ibv_send_wr* wr, ibv_send_wr** bad, AddressOf address_of);
  // All of them or none.
  int post_all(QueuePair& queue_pair, const ibv_send_wr* requests, std::uint32_t count, AddressOf address_of);
  int post_receive(QueuePair& queue_pair, ibv_recv_wr* wr, ibv_recv_wr** bad);
  int post_receive(SharedReceiveQueue& srq, ibv_recv_wr* wr, ibv_recv_wr** bad);
  // Up to `count` completions; how many. -1 if the queue is broken and empty.
  int poll(CompletionQueue& cq, int count, ibv_wc* completions);
  // One completion's slots go back to the queues that it came from.
  static void polled(const Completion& completion);
  void arm(CompletionQueue& cq, Arming arming);

  // -- tables ------------------------------------------------------------------------------------------------------
  // Fills in everything but the network part of `attributes`; nullopt where the port, GID index or GRH is wrong.
  [[nodiscard]] std::optional<AddressVector> resolve(const ibv_ah_attr& attributes);
  [[nodiscard]] Port& port(std::uint8_t number) { return ports_[number - 1U]; }
  [[nodiscard]] const Port& port(std::uint8_t number) const { return ports_[number - 1U]; }
  [[nodiscard]] std::uint8_t port_count() const { return static_cast<std::uint8_t>(ports_.size()); }
  void set_port_active(std::uint8_t port, bool active);
  void set_active_mtu(std::uint8_t port, ibv_mtu mtu);
  void set_gid(std::uint8_t port, std::uint32_t index, const GidConfig& gid);
  void set_pkey(std::uint8_t port, std::uint32_t index, std::uint16_t pkey);
  void tell_wire_gids();
  // The wire changes when faults are switched on or off (FaultyWire in front of it).
  void set_wire(Wire& wire) {
    wire_ = &wire;
    train_limit_ = wire.train_limit();
  }
  [[nodiscard]] Wire& wire() { return *wire_; }
  // As Wire::train_limit().
  [[nodiscard]] std::uint32_t train_limit() const { return train_limit_; }
  [[nodiscard]] QueuePair* find(Qpn qpn) const {
    const std::uint32_t slot = (qpn.value - config.first_qpn) & Qpn::mask;
    return slot < queue_pairs_.size() ? queue_pairs_[slot] : nullptr;
  }
  [[nodiscard]] std::uint32_t queue_pair_count() const { return queue_pair_count_; }

  // -- for the halves of a queue pair (requester.cpp, responder.cpp, datagram.cpp) -----------------------------------
  [[nodiscard]] Time now() { return last_now_ = clock_.now(); }
  // Sends one packet of a queue pair; fills in what all packets have in common. False when the wire has no room.
  [[nodiscard]] bool transmit(QueuePair& queue_pair, const AddressVector& address, Packet& packet,
                              std::span<const Piece> pieces);
  void owe(QueuePair& queue_pair) {
    if (queue_pair.owes_work) return;
    queue_pair.owes_work = true;
    owing_.push_back(&queue_pair);
  }
  // As owe(), and before progress() returns.
  void owe_at_once(QueuePair& queue_pair) {
    owe(queue_pair);
    settles_at_once_ = true;
  }
  // The send request at the head is done: its completion if it is owed one, its slot on the way back.
  void complete_send(QueuePair& queue_pair, ibv_wc_status status);
  void complete_receive(QueuePair& queue_pair, const ReceiveRequest& request, const Received& received, bool solicited);
  // Takes the next receive, telling the SRQ's limit; nullptr-like when none waits.
  [[nodiscard]] bool take_receive(QueuePair& queue_pair, ReceiveRequest& request);
  // The request at the head of the send queue ends with `status` and takes the queue pair with it.
  void fail_send(QueuePair& queue_pair, ibv_wc_status status);
  void tell(QueuePair& queue_pair, ibv_event_type type) { events_.queue_pair_event(queue_pair, type); }
  void publish(const QueuePair& queue_pair);

  const DeviceConfig config;
  FaultPlan faults;  // the part that is not about packets
  Counters counters;
  RegionTable regions;
  TimerQueue timers;

 private:
  void dispatch(const InboundPacket& inbound);
  void dispatch_checked(const InboundPacket& inbound);
  void settle_owed();
  // The entry of one more completion, to be filled in; nullptr if the queue has overrun, and the queue pair ends.
  Completion* add_completion(CompletionQueue& cq, QueuePair& queue_pair, bool is_receive, std::uint32_t send_position);
  void notify(CompletionQueue& cq, bool solicited);
  void flush(QueuePair& queue_pair);
  void discard_completions(QueuePair& queue_pair);
  void reset(QueuePair& queue_pair);
  int check_values(const QueuePair& queue_pair, const ibv_qp_attr& attributes, int mask) const;
  void apply(QueuePair& queue_pair, const ibv_qp_attr& attributes, int mask);
  int take_send(QueuePair& queue_pair, const ibv_send_wr& wr, AddressOf address_of);
  void send_posted(QueuePair& queue_pair);
  static void keep_inline_data(SendQueue& sends, std::uint32_t posted_from);
  int post_to(ReceiveQueue& queue, ibv_recv_wr* wr, ibv_recv_wr** bad);
  int refuse_send(const QueuePair& queue_pair, const ibv_send_wr& wr, std::uint64_t& length) const;
  void enqueue(QueuePair& queue_pair, const ibv_send_wr& wr, std::uint32_t length);

  Wire* wire_;
  std::uint32_t train_limit_;
  const Clock& clock_;
  EventSink& events_;
  std::vector<Port> ports_;
  std::vector<QueuePair*> queue_pairs_;  // by (QPN - first_qpn)
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t queue_pair_count_ = 0;
  std::vector<QueuePair*> owing_;     // owe a transmission
  std::vector<QueuePair*> settling_;  // settle_owed()'s working copy, kept for its capacity
  bool settles_at_once_ = false;      // something in owing_ is not to wait for the next progress()
  QueuePair* dying_ =
      nullptr;  // struck by FaultPlan::kill_qpn; dies in the next progress(), not in the middle of a transmission
  std::uint32_t progress_calls_ = 0;
  Time last_now_{};  // when the clock was last asked: as fresh as a wire needs it
};

}  // namespace verbatim::soft
