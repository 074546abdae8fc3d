#include "transport/lane.hpp"

#include <algorithm>
#include <utility>

namespace verbatim::transport {

Lane::Lane(std::unique_ptr<qp::ReliableQueue> queue, mem::RegisteredRegion slots, const ReceiveShape& shape,
           std::uint32_t epoch)
    : queue_(std::move(queue)),
      epoch_(epoch),
      inline_bytes_(queue_->max_inline()),
      receive_slots_(shape.depth + shape.control_slots),
      receive_slot_bytes_(shape.slot_bytes),
      repost_batch_(std::clamp<std::uint32_t>(shape.repost_batch, 1, std::max(1U, shape.depth / 2))),
      frame_credit_threshold_(std::max(1U, shape.depth / 2)),
      receive_region_(std::move(slots)) {}

void Lane::open(mem::RegisteredRegion slots, const SendShape& shape) {
  send_region_ = std::move(slots);
  send_shape_ = shape;
  send_slot_bytes_ = slot_bytes_for(shape.eager_bytes);
  longest_record_ = lines_of_record(static_cast<std::uint32_t>(sizeof(FrameHeader)) + shape.eager_bytes);
}

int Lane::post_all_receives() {
  std::array<qp::ReceiveSlot, qp::max_receive_batch> batch;
  for (std::uint32_t slot = 0; slot < receive_slots_;) {
    std::size_t count = 0;
    for (; count < batch.size() && slot < receive_slots_; ++count, ++slot) {
      batch[count] = {slot, receive_slot(slot), receive_slot_bytes_, receive_region_.lkey()};
    }
    if (const int problem = queue_->post_receives(epoch_, std::span(batch.data(), count)); problem != 0) return problem;
  }
  return 0;
}

int Lane::repost() {
  if (batched_ == 0) return 0;
  const int problem = queue_->post_receives(epoch_, std::span(batch_.data(), batched_));
  if (problem != 0) return problem;
  frames_consumed_ += batched_sequenced_;
  batched_ = batched_sequenced_ = 0;
  return 0;
}

int Lane::commit_slot(const std::byte* frame, std::uint32_t bytes) {
  ++frames_sent_;
  next_send_slot_ = next_send_slot_ + 1 == send_shape_.depth ? 0 : next_send_slot_ + 1;
  return post(qp::WorkKind::send, frame, bytes);
}

int Lane::post(qp::WorkKind kind, const std::byte* frame, std::uint32_t bytes) {
  const qp::Segment segment{frame, bytes, send_region_.lkey()};
  return queue_->post_send(kind, epoch_, std::span(&segment, 1), qp::Signal::no,
                           bytes <= inline_bytes_ ? qp::Inline::yes : qp::Inline::no);
}

int Lane::send_credit(FrameFlag flags) {
  FrameHeader credit{.kind = FrameKind::credit, .flags = flags};
  if (writes_to_ring()) {
    std::byte* const record = begin_record(0, 0);
    return record != nullptr ? commit(record, credit) : 0;
  }
  if (queue_->control_slots_free() == 0) return 0;
  const std::size_t slot = std::size_t{send_shape_.depth} + next_control_slot_;
  next_control_slot_ = next_control_slot_ + 1 == send_shape_.control_slots ? 0 : next_control_slot_ + 1;
  std::byte* const frame = send_region_.address() + slot * send_slot_bytes_;
  complete(frame, credit);
  return post(qp::WorkKind::control, frame, sizeof(FrameHeader));
}

std::vector<const FrameHeader*> Lane::frames_on_the_way() const {
  std::vector<const FrameHeader*> frames;
  const std::uint32_t in_slots = frames_sent_ - frames_consumed_by_peer_;
  for (std::uint32_t back = in_slots; back != 0; --back) {
    const std::uint32_t slot = (next_send_slot_ + send_shape_.depth - back) % send_shape_.depth;
    frames.push_back(
        reinterpret_cast<const FrameHeader*>(send_region_.address() + std::size_t{slot} * send_slot_bytes_));
  }
  for (std::uint32_t line = lines_consumed_by_peer_; line != lines_written_;) {
    const auto* frame =
        reinterpret_cast<const FrameHeader*>(mirror_.address() + std::size_t{line & (lines_ - 1)} * line_bytes);
    if (is_sequenced(frame->kind)) frames.push_back(frame);
    const auto bytes = static_cast<std::uint32_t>(sizeof(FrameHeader)) + frame->length;
    line = next_record(line + lines_of_record(bytes), lines_, longest_record_);
  }
  std::ranges::sort(frames, [this](const FrameHeader* one, const FrameHeader* other) {
    return next_sequence_ - one->sequence > next_sequence_ - other->sequence;
  });
  return frames;
}

void Lane::open_reader(mem::RegisteredRegion ring) {
  ring_ = std::move(ring);
  const auto lines = std::bit_floor(static_cast<std::uint32_t>(ring_.bytes() / line_bytes));
  reader_ = WriteQueueReader(ring_.address(), lines, longest_record_);
}

WriteQueueOffer Lane::offer() const noexcept {
  return {.address = reinterpret_cast<std::uintptr_t>(ring_.address()),
          .lines = reader_.lines(),
          .rkey = ring_.rkey().value};
}

void Lane::open_writer(const WriteQueueOffer& offer, mem::RegisteredRegion mirror) {
  mirror_ = std::move(mirror);
  ring_address_ = offer.address;
  ring_rkey_ = RKey{offer.rkey};
  lines_ = offer.lines;
}

}  // namespace verbatim::transport
