// Posted sends of one queue pair, from post to completion.
//
//   head_ … cursor_     sent at least in part, not yet completed (reliable service)
//   cursor_ … tail_     waiting to be sent
//   freed_  … head_     completed, but their slots come back only when a completion at or behind them is polled
#pragma once

#include <infiniband/verbs.h>

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "device/soft/engine/wire.hpp"

namespace verbatim::soft {

// Where a datagram goes, resolved when the address handle was made.
struct AddressVector {
  Path* path = nullptr;
  ibv_gid source_gid{};
  ibv_gid destination_gid{};
  std::uint32_t flow_label = 0;
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t port = 0;
};

struct SendRequest {
  std::uint64_t wr_id;
  std::uint64_t remote_address;
  std::uint64_t compare_or_add;
  std::uint64_t swap;
  std::uint32_t rkey;
  std::uint32_t immediate;
  std::uint32_t length;  // bytes
  std::uint32_t piece_count;
  std::uint32_t flags;    // IBV_SEND_*
  std::uint32_t packets;  // PSNs it takes, at least 1; set with first_psn when first sent
  Psn first_psn;
  std::uint32_t received;  // READ: response packets taken so far
  ibv_wr_opcode opcode;
  ibv_wc_status failed;  // a local error found before or while sending; completed with it when its turn comes
  bool placed;           // WRITE: its data was put into the target's memory when it was first sent
  bool answered;         // READ, atomic: the whole response is here
};

// Requests that only an answer completes, not an ACK.
[[nodiscard]] inline bool is_read_or_atomic(const SendRequest& request) {
  return request.opcode == IBV_WR_RDMA_READ || request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
         request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

// A datagram's own fields, kept aside so that a connected queue pair's requests stay small.
struct DatagramTarget {
  AddressVector address;
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
};

class SendQueue {
 public:
  SendQueue(std::uint32_t max_requests, std::uint32_t max_pieces, std::uint32_t max_inline, bool datagram)
      : requests_(std::bit_ceil(max_requests)),
        pieces_(requests_.size() * max_pieces),
        inline_(requests_.size() * max_inline),
        targets_(datagram ? requests_.size() : 0),
        capacity_(max_requests),
        mask_(static_cast<std::uint32_t>(requests_.size()) - 1),
        max_pieces_(max_pieces),
        max_inline_(max_inline) {}

  [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
  [[nodiscard]] std::uint32_t max_pieces() const { return max_pieces_; }
  [[nodiscard]] std::uint32_t max_inline() const { return max_inline_; }
  [[nodiscard]] bool full() const { return tail_ - freed_ == capacity_; }
  [[nodiscard]] bool empty() const { return head_ == tail_; }

  // Positions are counts that only grow (modulo 2^32); at() finds the request at one.
  [[nodiscard]] std::uint32_t head() const { return head_; }
  [[nodiscard]] std::uint32_t cursor() const { return cursor_; }
  [[nodiscard]] std::uint32_t tail() const { return tail_; }
  [[nodiscard]] SendRequest& at(std::uint32_t position) { return requests_[slot(position)]; }
  [[nodiscard]] std::span<Piece> pieces(std::uint32_t position) {
    return {&pieces_[std::size_t{slot(position)} * max_pieces_], at(position).piece_count};
  }
  [[nodiscard]] Piece* piece_room(std::uint32_t position) {
    return &pieces_[std::size_t{slot(position)} * max_pieces_];
  }
  [[nodiscard]] std::byte* inline_room(std::uint32_t position) {
    return inline_.data() + std::size_t{slot(position)} * max_inline_;
  }
  [[nodiscard]] DatagramTarget& target(std::uint32_t position) { return targets_[slot(position)]; }

  // The request at tail() was filled in.
  void posted() { ++tail_; }
  // Takes back what was posted since tail() was `position`, none of which was sent.
  void take_back_to(std::uint32_t position) { tail_ = position; }
  // The request at head() is done; its completion, if it gets one, carries the position returned.
  std::uint32_t retire_head() {
    ++head_;
    if (static_cast<std::int32_t>(cursor_ - head_) < 0) cursor_ = head_;
    return head_;
  }
  void set_cursor(std::uint32_t position) { cursor_ = position; }
  void free_up_to(std::uint32_t position) { freed_ = position; }
  void clear() { head_ = cursor_ = tail_ = freed_ = 0; }

 private:
  // Storage is a power of two, so that positions may wrap; how many may be posted is what was asked for.
  [[nodiscard]] std::uint32_t slot(std::uint32_t position) const { return position & mask_; }

  std::vector<SendRequest> requests_;
  std::vector<Piece> pieces_;
  std::vector<std::byte> inline_;
  std::vector<DatagramTarget> targets_;
  std::uint32_t capacity_;
  std::uint32_t mask_;
  std::uint32_t max_pieces_;
  std::uint32_t max_inline_;
  std::uint32_t head_ = 0;
  std::uint32_t cursor_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t freed_ = 0;
};

}  // namespace verbatim::soft
