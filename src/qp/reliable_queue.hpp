// One RC queue pair with its data path. Posting is inline and goes straight to the device: no lock, no allocation.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>

#include "base/ids.hpp"
#include "device/context.hpp"
#include "qp/completion.hpp"
#include "qp/connection.hpp"
#include "qp/queue_pair.hpp"
#include "qp/send_slots.hpp"
#include "qp/work_id.hpp"

namespace verbatim::qp {

// A piece of local registered memory. An inline post reads it at once and needs no key.
struct Segment {
  const void* address = nullptr;
  std::uint32_t bytes = 0;
  LKey lkey;
};

struct RemotePlace {
  std::uint64_t address = 0;
  RKey rkey;
};

// Memory for one message to come, and the number that its completion will carry.
struct ReceiveSlot {
  std::uint32_t slot = 0;  // 28 bits
  void* address = nullptr;
  std::uint32_t bytes = 0;
  LKey lkey;
};

enum class Signal : bool { no, yes };  // no: only when the queue needs one by itself
enum class Inline : bool { no, yes };  // yes: all segments together have at most max_inline() bytes

inline constexpr std::size_t max_segments = 4;
inline constexpr std::size_t max_receive_batch = 64;

// Work requests for receives, chained once. Shared by all queue pairs of a thread.
class ReceiveChain {
 public:
  ReceiveChain();
  ReceiveChain(const ReceiveChain&) = delete;
  ReceiveChain& operator=(const ReceiveChain&) = delete;

  // At least one slot. 0 or an errno value.
  int post(ibv_qp* queue_pair, std::uint32_t epoch, std::span<const ReceiveSlot> slots);

 private:
  std::array<ibv_recv_wr, max_receive_batch> requests_{};
  std::array<ibv_sge, max_receive_batch> pieces_{};
};

class ReliableQueue {
 public:
  struct Sizes {
    std::uint32_t send_slots = 0;     // for anything
    std::uint32_t control_slots = 0;  // more of them, for WorkKind::control alone
    std::uint32_t receive_slots = 0;
    std::uint32_t signal_interval = 1;
    std::uint32_t max_inline = 0;  // bytes, as granted
  };
  struct Counters {
    std::uint64_t posts = 0;          // of sends, writes and reads
    std::uint64_t signalled = 0;      // of these
    std::uint64_t receive_posts = 0;  // calls, whatever the length of the batch
    std::uint64_t receives = 0;
  };

  // `queue_pair` has room for one send and one receive more than `sizes`: the markers of a drain. `chain` must outlive
  // it.
  ReliableQueue(device::Context& context, QueuePair queue_pair, const Sizes& sizes, ReceiveChain& chain);
  ReliableQueue(const ReliableQueue&) = delete;
  ReliableQueue& operator=(const ReliableQueue&) = delete;

  [[nodiscard]] Qpn number() const noexcept { return queue_pair_.number(); }
  [[nodiscard]] const Sizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] std::uint32_t max_inline() const noexcept { return sizes_.max_inline; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  // Whether the device promises that the bytes of an RDMA write become visible in address order. Control path.
  [[nodiscard]] bool data_in_order() const { return context_.data_in_order(queue_pair_.handle(), IBV_WR_RDMA_WRITE); }

  // -- connecting ------------------------------------------------------------------------------------------------
  // INIT → RTR → RTS. Throw Error as QueuePair::modify does. From RTR on it can receive; send in RTS, and only after
  // the peer is known to be in RTR.
  void connect_to_rtr(const RcConnection& connection) { queue_pair_.modify(to_rtr(connection)); }
  void connect_to_rts(const RcConnection& connection) { queue_pair_.modify(to_rts(connection)); }
  // For what else is to be done with it.
  [[nodiscard]] QueuePair& queue_pair() noexcept { return queue_pair_; }

  // -- posting ---------------------------------------------------------------------------------------------------
  // 0, EAGAIN if no slot of that kind is free (the device has not seen it), or what the device said. The bytes must
  // stay as they are until a completion at or behind this post came, unless they are inline. The completion carries
  // kind, epoch and the ordinal that next_ordinal() gave before.
  // `kind`: send or control. At most max_segments.
  int post_send(WorkKind kind, std::uint32_t epoch, std::span<const Segment> segments, Signal signal, Inline inlined);
  int post_write(std::uint32_t epoch, std::span<const Segment> segments, RemotePlace target, Signal signal,
                 Inline inlined);
  // Into the segments, which need LOCAL_WRITE.
  int post_read(std::uint32_t epoch, std::span<const Segment> segments, RemotePlace source, Signal signal);

  [[nodiscard]] std::uint32_t send_slots_free() const noexcept { return slots_.data_free(); }
  // Includes those that data may use as well.
  [[nodiscard]] std::uint32_t control_slots_free() const noexcept { return slots_.control_free(); }
  [[nodiscard]] std::uint32_t sends_outstanding() const noexcept { return slots_.outstanding(); }
  [[nodiscard]] std::uint32_t next_ordinal() const noexcept { return slots_.next_ordinal(); }
  // For every completion of a post of the above, failed or not: gives back its slot and those before it; how many.
  std::uint32_t on_send_completed(WorkId id) noexcept { return slots_.completed(id.slot); }

  // One call of the device for at most max_receive_batch slots; 0 or an errno value. From INIT on. The memory is the
  // device's until the slot's completion. More than receive_slots at a time is the device's to refuse.
  int post_receives(std::uint32_t epoch, std::span<const ReceiveSlot> slots);

  // -- recycling (qp/recycling.hpp) ------------------------------------------------------------------------------
  // A request that changes nothing into each queue, which completes as WorkKind::drain with `round` for epoch and the
  // slot number below. 0 or an errno value.
  static constexpr std::uint32_t send_marker = 0;
  static constexpr std::uint32_t receive_marker = 1;
  int post_markers(std::uint32_t round);
  // RESET discarded what was posted.
  void forget_posted() noexcept { slots_.forget(); }

 private:
  int post(ibv_wr_opcode opcode, WorkKind kind, std::uint32_t epoch, std::span<const Segment> segments, unsigned flags);

  QueuePair queue_pair_;
  SendSlots slots_;
  Counters counters_;
  ReceiveChain& chain_;
  ibv_send_wr request_{};  // what doesn't change from post to post is filled in once
  std::array<ibv_sge, max_segments> pieces_{};
  Sizes sizes_;
  device::Context& context_;
};

inline int ReceiveChain::post(ibv_qp* queue_pair, std::uint32_t epoch, std::span<const ReceiveSlot> slots) {
  if (slots.size() > max_receive_batch) return EINVAL;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const ReceiveSlot& slot = slots[i];
    requests_[i].wr_id = WorkId{WorkKind::receive, slot.slot, epoch}.encode();
    pieces_[i] = {reinterpret_cast<std::uintptr_t>(slot.address), slot.bytes, slot.lkey.value};
  }
  ibv_recv_wr& last = requests_[slots.size() - 1];
  ibv_recv_wr* const after_last = last.next;
  last.next = nullptr;
  ibv_recv_wr* bad = nullptr;
  const int problem = ibv_post_recv(queue_pair, requests_.data(), &bad);
  last.next = after_last;
  return problem;
}

inline int ReliableQueue::post(ibv_wr_opcode opcode, WorkKind kind, std::uint32_t epoch,
                               std::span<const Segment> segments, unsigned flags) {
  if ((kind == WorkKind::control ? slots_.control_free() : slots_.data_free()) == 0) return EAGAIN;
  if (segments.size() > max_segments) return EINVAL;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    pieces_[i] = {reinterpret_cast<std::uintptr_t>(segment.address), segment.bytes, segment.lkey.value};
  }
  if (slots_.must_signal()) flags |= IBV_SEND_SIGNALED;
  request_.wr_id = WorkId{kind, slots_.next_ordinal(), epoch}.encode();
  request_.num_sge = static_cast<int>(segments.size());
  request_.opcode = opcode;
  request_.send_flags = flags;
  ibv_send_wr* bad = nullptr;
  if (const int problem = ibv_post_send(queue_pair_.handle(), &request_, &bad); problem != 0) [[unlikely]]
    return problem;
  const bool signalled = (flags & IBV_SEND_SIGNALED) != 0;
  slots_.posted(signalled);
  ++counters_.posts;
  counters_.signalled += signalled ? 1 : 0;
  return 0;
}

[[nodiscard]] inline unsigned flags_of(Signal signal, Inline inlined) {
  return (signal == Signal::yes ? unsigned{IBV_SEND_SIGNALED} : 0U) |
         (inlined == Inline::yes ? unsigned{IBV_SEND_INLINE} : 0U);
}

inline int ReliableQueue::post_send(WorkKind kind, std::uint32_t epoch, std::span<const Segment> segments,
                                    Signal signal, Inline inlined) {
  return post(IBV_WR_SEND, kind, epoch, segments, flags_of(signal, inlined));
}

inline int ReliableQueue::post_write(std::uint32_t epoch, std::span<const Segment> segments, RemotePlace target,
                                     Signal signal, Inline inlined) {
  request_.wr.rdma.remote_addr = target.address;
  request_.wr.rdma.rkey = target.rkey.value;
  return post(IBV_WR_RDMA_WRITE, WorkKind::write, epoch, segments, flags_of(signal, inlined));
}

inline int ReliableQueue::post_read(std::uint32_t epoch, std::span<const Segment> segments, RemotePlace source,
                                    Signal signal) {
  request_.wr.rdma.remote_addr = source.address;
  request_.wr.rdma.rkey = source.rkey.value;
  return post(IBV_WR_RDMA_READ, WorkKind::read, epoch, segments, flags_of(signal, Inline::no));
}

inline int ReliableQueue::post_receives(std::uint32_t epoch, std::span<const ReceiveSlot> slots) {
  if (slots.empty()) return 0;
  const int problem = chain_.post(queue_pair_.handle(), epoch, slots);
  if (problem == 0) {
    ++counters_.receive_posts;
    counters_.receives += slots.size();
  }
  return problem;
}

}  // namespace verbatim::qp
