// A completion queue: a ring of completions, what it is armed for, and nothing that blocks.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace verbatim::soft {

class QueuePair;

// What polling turns into an ibv_wc, written once and in place: each copy on the way would read, as a whole, what was
// just written in pieces, which processors are slow at.
struct Completion {
  std::uint64_t wr_id;
  QueuePair* queue_pair;
  Qpn qpn;
  // Send side: the send queue position up to which polling this completion gives slots back. Receive side: unused.
  std::uint32_t send_position;
  std::uint32_t byte_len;
  std::uint32_t immediate;  // network byte order
  Qpn source_qpn;           // datagrams
  std::uint8_t status;      // ibv_wc_status
  std::uint8_t opcode;      // ibv_wc_opcode
  std::uint8_t flags;       // IBV_WC_*
  std::uint8_t service_level;
  bool is_receive;

  void copy_to(ibv_wc& wc) const {
    wc.wr_id = wr_id;
    wc.status = static_cast<ibv_wc_status>(status);
    wc.opcode = static_cast<ibv_wc_opcode>(opcode);
    wc.vendor_err = 0;
    wc.byte_len = byte_len;
    wc.imm_data = immediate;
    wc.qp_num = qpn.value;
    wc.src_qp = source_qpn.value;
    wc.wc_flags = flags;
    wc.pkey_index = 0;
    wc.slid = 0;
    wc.sl = service_level;
    wc.dlid_path_bits = 0;
  }
};
static_assert(sizeof(Completion) == 48);
static_assert(IBV_WC_RECV_RDMA_WITH_IMM <= UINT8_MAX, "the largest opcode that there is here");

enum class Arming : std::uint8_t { none, solicited_only, any };

class CompletionQueue {
 public:
  explicit CompletionQueue(std::uint32_t capacity) : entries_(capacity) {}

  [[nodiscard]] std::uint32_t capacity() const { return static_cast<std::uint32_t>(entries_.size()); }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool overrun() const { return overrun_; }

  // One more at the end, for the caller to fill in. nullptr when full: the queue is broken from then on (specification,
  // volume 1, 11.6.3.1) and takes nothing more.
  [[nodiscard]] Completion* add() {
    if (size_ == entries_.size() || overrun_) [[unlikely]] {
      overrun_ = true;
      return nullptr;
    }
    return &at(size_++);
  }
  // Only when size() > 0.
  [[nodiscard]] const Completion& front() const { return entries_[head_]; }
  void pop() {
    if (++head_ == entries_.size()) head_ = 0;
    --size_;
  }

  // Takes out what belongs to a queue pair that is reset or destroyed; `removed` sees each.
  template <typename Removed>
  void discard(const QueuePair* queue_pair, Removed removed) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < size_; ++i) {
      const Completion& completion = at(i);
      if (completion.queue_pair == queue_pair) {
        removed(completion);
      } else {
        at(kept++) = completion;
      }
    }
    size_ = kept;
  }
  // capacity >= size().
  void resize(std::uint32_t capacity) {
    std::vector<Completion> resized(capacity);
    for (std::uint32_t i = 0; i < size_; ++i) resized[i] = at(i);
    entries_ = std::move(resized);
    head_ = 0;
  }

  Arming armed = Arming::none;
  std::uint32_t users = 0;  // queue pairs made with it
  void* owner = nullptr;    // whoever made it, for events

 private:
  // The nth from the oldest.
  [[nodiscard]] Completion& at(std::uint32_t nth) {
    const std::uint32_t index = head_ + nth;
    return entries_[index < entries_.size() ? index : index - capacity()];
  }

  std::vector<Completion> entries_;
  std::uint32_t head_ = 0;
  std::uint32_t size_ = 0;
  bool overrun_ = false;
};

}  // namespace verbatim::soft
