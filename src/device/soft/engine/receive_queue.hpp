// Posted receives, of one queue pair or shared by many.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "device/soft/engine/wire.hpp"

namespace verbatim::soft {

struct ReceiveRequest {
  std::uint64_t wr_id = 0;
  std::uint32_t length = 0;  // of all pieces; saturates at 2^32-1
  std::span<const Piece> pieces;
};

// A ring. A slot is free again when the completion of its receive was polled, as on hardware.
class ReceiveQueue {
 public:
  ReceiveQueue(std::uint32_t max_requests, std::uint32_t max_pieces)
      : requests_(max_requests), pieces_(std::size_t{max_requests} * max_pieces), max_pieces_(max_pieces) {}

  [[nodiscard]] std::uint32_t capacity() const { return static_cast<std::uint32_t>(requests_.size()); }
  [[nodiscard]] std::uint32_t max_pieces() const { return max_pieces_; }
  [[nodiscard]] std::uint32_t waiting() const { return waiting_; }
  [[nodiscard]] bool full() const { return waiting_ + taken_ == capacity(); }

  // Only if !full() and the request has at most max_pieces().
  void post(const ibv_recv_wr& wr, bool zero_length_is_2gib) {
    Piece* pieces = &pieces_[std::size_t{tail_} * max_pieces_];
    std::uint64_t length = 0;
    for (int i = 0; i < wr.num_sge; ++i) {
      const ibv_sge& sge = wr.sg_list[i];
      const std::uint32_t bytes = sge.length == 0 && zero_length_is_2gib ? 1U << 31 : sge.length;
      pieces[i] = {reinterpret_cast<std::byte*>(sge.addr), bytes, LKey{sge.lkey}};
      length += bytes;
    }
    requests_[tail_] = {wr.wr_id,
                        static_cast<std::uint32_t>(std::min<std::uint64_t>(length, UINT32_MAX)),
                        {pieces, static_cast<std::size_t>(wr.num_sge)}};
    if (++tail_ == capacity()) tail_ = 0;
    ++waiting_;
  }

  // The oldest; only if waiting() > 0. Its pieces stay valid until release() has been called for it.
  [[nodiscard]] ReceiveRequest take() {
    const ReceiveRequest taken = requests_[head_];
    if (++head_ == capacity()) head_ = 0;
    --waiting_;
    ++taken_;
    return taken;
  }
  // One taken receive was polled or discarded.
  void release() { --taken_; }

  void clear() { head_ = tail_ = waiting_ = taken_ = 0; }

 private:
  std::vector<ReceiveRequest> requests_;
  std::vector<Piece> pieces_;
  std::uint32_t max_pieces_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t waiting_ = 0;
  std::uint32_t taken_ = 0;
};

// What a queue pair's receives come from when they are shared.
struct SharedReceiveQueue {
  ReceiveQueue queue;
  std::uint32_t domain = 0;
  std::uint32_t limit = 0;  // below it one IBV_EVENT_SRQ_LIMIT_REACHED; 0: not armed
  std::uint32_t users = 0;  // queue pairs made with it
  void* owner = nullptr;    // whoever made it, for events
};

}  // namespace verbatim::soft
