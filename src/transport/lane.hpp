// One carrier of a channel: a reliable connection, with the slots its frames are composed in, the receives posted on
// it, and the credits of both directions. Later, if the channel is busy, a write queue in each direction.
//
// Credits are cumulative and count frames (of the queue pair) or lines (of a write queue):
//   - what may be sent:  sent - consumed_by_peer  < the receives the peer has posted for us;
//   - what was taken:    consumed, told to the peer in the header of whatever goes out next.
// A frame counts as consumed when its receive has been posted again, so held + in flight = posted at any time, and no
// receiver ever runs dry. Credit frames use receives and lines that are kept for them: one goes out when half a window
// has been consumed untold, and the peer can't use up the other half without having read it; another answers a flush,
// of which the peer has one under way. So max_credit_frames bounds those that can be unread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/config/check.hpp"
#include "mem/region.hpp"
#include "qp/reliable_queue.hpp"
#include "transport/frame.hpp"
#include "transport/write_queue.hpp"

namespace verbatim::transport {

// What this end posts, known before the peer is.
struct ReceiveShape {
  std::uint32_t depth = 0;          // receives for frames: the credits that the peer has
  std::uint32_t control_slots = 0;  // on top of that, for credit frames
  std::uint32_t slot_bytes = 0;     // of each
  std::uint32_t repost_batch = 1;
};

// What the peer lets this end send.
struct SendShape {
  std::uint32_t depth = 0;          // the peer's receives for frames
  std::uint32_t control_slots = 0;  // … for credit frames
  std::uint32_t eager_bytes = 0;    // most bytes behind a header
};

// Every frame of a fixed length fits into a slot that has room for so much.
inline constexpr std::uint32_t least_eager_bytes = 64;
static_assert(sizeof(RendezvousGrant) <= least_eager_bytes && sizeof(AtomicRequest) <= least_eager_bytes &&
              sizeof(Piece) < least_eager_bytes);

[[nodiscard]] constexpr std::uint32_t slot_bytes_for(std::uint32_t eager_bytes) noexcept {
  return (static_cast<std::uint32_t>(sizeof(FrameHeader)) + eager_bytes + line_bytes - 1) / line_bytes * line_bytes;
}

// Credit frames that can be unread at a time: of either kind of credit one per half of a window, and one for a flush.
inline constexpr std::uint32_t max_credit_frames = 5;
static_assert(max_credit_frames <= config::least_control_slots);
static_assert(config::most_reposted <= qp::max_receive_batch);

class Lane {
 public:
  // With receives alone: `slots` has room for depth + control_slots of them.
  Lane(std::unique_ptr<qp::ReliableQueue> queue, mem::RegisteredRegion slots, const ReceiveShape& shape,
       std::uint32_t epoch);
  // Posts every receive. 0 or errno.
  [[nodiscard]] int post_all_receives();
  // Now it can send too: `slots` has room for depth + control_slots frames.
  void open(mem::RegisteredRegion slots, const SendShape& shape);
  [[nodiscard]] std::uint32_t eager_bytes() const noexcept { return send_shape_.eager_bytes; }

  // -- sending -----------------------------------------------------------------------------------------------------
  // Memory for a sequenced frame with `length` bytes behind its header, or nullptr if the peer or the send queue has no
  // room. A frame that was begun must be sent before the next is. The body is the caller's to write.
  [[nodiscard]] std::byte* begin(std::uint32_t length) {
    return writes_to_ring() ? begin_record(length, lines_for_credits()) : begin_slot();
  }
  // Of the header the caller gives kind, flags, length (that of begin()) and tag; the rest is filled in.
  [[nodiscard]] int send(std::byte* frame, FrameHeader header) {
    header.sequence = next_sequence_++;
    return commit(frame, header);
  }
  // 0, or errno. Nothing happens, and it is still owed, while the carrier is full of other things.
  [[nodiscard]] int send_credit(FrameFlag flags);
  // The peer has lost count of half a window.
  [[nodiscard]] bool owes_credit() const noexcept {
    return frames_consumed_ - frames_told_ >= frame_credit_threshold_ ||
           (reader_.lines() != 0 && reader_.consumed() - lines_told_ >= reader_.lines() / 2);
  }
  [[nodiscard]] bool owes_anything() const noexcept {
    return frames_consumed_ != frames_told_ || reader_.consumed() != lines_told_;
  }

  // What the peer has to have taken for everything sent until now to be with it.
  struct Position {
    std::uint32_t frames = 0;
    std::uint32_t lines = 0;
  };
  [[nodiscard]] Position sent() const noexcept { return {frames_sent_, lines_written_}; }
  [[nodiscard]] bool peer_has(Position position) const noexcept {
    return static_cast<std::int32_t>(frames_consumed_by_peer_ - position.frames) >= 0 &&
           static_cast<std::int32_t>(lines_consumed_by_peer_ - position.lines) >= 0;
  }

  // -- receiving ---------------------------------------------------------------------------------------------------
  [[nodiscard]] std::byte* receive_slot(std::uint32_t slot) const noexcept {
    return receive_region_.address() + std::size_t{slot} * receive_slot_bytes_;
  }
  [[nodiscard]] bool has_receive_slot(std::uint32_t slot) const noexcept { return slot < receive_slots_; }
  // The frame in a slot has been dealt with. Slots are posted in batches; 0 or errno.
  [[nodiscard]] int give_back_receive(std::uint32_t slot, bool sequenced) {
    batch_[batched_++] = {slot, receive_slot(slot), receive_slot_bytes_, receive_region_.lkey()};
    batched_sequenced_ += sequenced ? 1 : 0;
    return batched_ == repost_batch_ ? repost() : 0;
  }
  // Posts what has been given back and waits for a batch.
  [[nodiscard]] int repost();

  // -- recovery ----------------------------------------------------------------------------------------------------
  // Goes on with another lane's count of frames, where that was taken away. Before anything is sent.
  void continue_at(std::uint32_t next_sequence, std::uint32_t expected_sequence) noexcept {
    next_sequence_ = next_sequence;
    expected_sequence_ = expected_sequence;
  }
  // The sequenced frames that the peer is not known to have taken, in order. They lie in this lane's memory.
  [[nodiscard]] std::vector<const FrameHeader*> frames_on_the_way() const;

  // Frames and lines, of what this lane has sent.
  [[nodiscard]] std::uint64_t taken_by_peer() const noexcept {
    return std::uint64_t{frames_consumed_by_peer_} + lines_consumed_by_peer_;
  }

  [[nodiscard]] std::uint32_t next_sequence() const noexcept { return next_sequence_; }
  [[nodiscard]] std::uint32_t expected_sequence() const noexcept { return expected_sequence_; }
  void on_sequenced() noexcept { ++expected_sequence_; }
  // The credits in a frame's header: older ones than we know say nothing new. False: they can't be.
  [[nodiscard]] bool on_credits(const FrameHeader& frame) noexcept {
    return advance(frames_consumed_by_peer_, frame.frames_consumed, frames_sent_) &&
           advance(lines_consumed_by_peer_, frame.lines_consumed, lines_written_);
  }

  // -- write queues ------------------------------------------------------------------------------------------------
  // Ours, that the peer will write to. The region is zeroed memory.
  void open_reader(mem::RegisteredRegion ring);
  [[nodiscard]] WriteQueueOffer offer() const noexcept;
  [[nodiscard]] bool has_reader() const noexcept { return reader_.lines() != 0; }
  [[nodiscard]] WriteQueueReader& reader() noexcept { return reader_; }
  // The peer's. `mirror` is as long, and holds what has been written until the peer has read it.
  void open_writer(const WriteQueueOffer& offer, mem::RegisteredRegion mirror);
  [[nodiscard]] bool writes_to_ring() const noexcept { return lines_ != 0; }

  [[nodiscard]] qp::ReliableQueue& queue() noexcept { return *queue_; }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_; }
  // Gives the queue pair up; its memory stays here until the pool has drained it.
  [[nodiscard]] std::unique_ptr<qp::ReliableQueue> take_queue() noexcept { return std::move(queue_); }

 private:
  [[nodiscard]] static bool advance(std::uint32_t& known, std::uint32_t said, std::uint32_t sent) noexcept {
    if (static_cast<std::int32_t>(said - known) <= 0) return true;
    if (said - known > sent - known) return false;
    known = said;
    return true;
  }
  // Every slot has room for the longest frame.
  [[nodiscard]] std::byte* begin_slot() {
    if (frames_sent_ - frames_consumed_by_peer_ >= send_shape_.depth || queue_->send_slots_free() == 0) {
      return nullptr;
    }
    return send_region_.address() + std::size_t{next_send_slot_} * send_slot_bytes_;
  }
  // A line each, and those that may be left out behind one of them.
  [[nodiscard]] std::uint32_t lines_for_credits() const noexcept { return max_credit_frames + longest_record_ - 1; }
  [[nodiscard]] std::byte* begin_record(std::uint32_t length, std::uint32_t reserve) {
    const std::uint32_t lines = lines_of_record(static_cast<std::uint32_t>(sizeof(FrameHeader)) + length);
    const std::uint32_t next = next_record(lines_written_ + lines, lines_, longest_record_);
    if (next - lines_consumed_by_peer_ + reserve > lines_ || queue_->send_slots_free() == 0) return nullptr;
    return mirror_.address() + std::size_t{lines_written_ & (lines_ - 1)} * line_bytes;
  }
  void complete(std::byte* frame, FrameHeader& header) noexcept {
    header.epoch = static_cast<std::uint16_t>(epoch_);
    header.frames_consumed = frames_told_ = frames_consumed_;
    header.lines_consumed = lines_told_ = reader_.consumed();
    write_header(frame, header);
  }
  [[nodiscard]] int commit(std::byte* frame, FrameHeader& header) {
    complete(frame, header);
    const auto bytes = static_cast<std::uint32_t>(sizeof(FrameHeader)) + header.length;
    return writes_to_ring() ? commit_record(frame, lines_of_record(bytes)) : commit_slot(frame, bytes);
  }
  [[nodiscard]] int commit_record(std::byte* record, std::uint32_t lines) {
    const std::uint32_t bytes = lines * line_bytes;
    std::memcpy(record + bytes - sizeof(record_mark), &record_mark, sizeof(record_mark));
    lines_written_ = next_record(lines_written_ + lines, lines_, longest_record_);
    return write(record, bytes);
  }
  [[nodiscard]] int commit_slot(const std::byte* frame, std::uint32_t bytes);
  [[nodiscard]] int post(qp::WorkKind kind, const std::byte* frame, std::uint32_t bytes);
  [[nodiscard]] int write(const std::byte* record, std::uint32_t bytes) {
    const qp::Segment segment{record, bytes, mirror_.lkey()};
    const auto offset = static_cast<std::uint64_t>(record - mirror_.address());
    return queue_->post_write(epoch_, std::span(&segment, 1), {ring_address_ + offset, ring_rkey_}, qp::Signal::no,
                              bytes <= inline_bytes_ ? qp::Inline::yes : qp::Inline::no);
  }

  // Read by every frame that goes out.
  std::unique_ptr<qp::ReliableQueue> queue_;
  std::uint32_t lines_ = 0;           // of the peer's write queue; 0: there is none
  std::uint32_t longest_record_ = 0;  // in lines, of either ring
  std::uint32_t lines_written_ = 0;
  std::uint32_t lines_consumed_by_peer_ = 0;
  std::uint32_t frames_sent_ = 0;
  std::uint32_t frames_consumed_by_peer_ = 0;
  std::uint32_t next_sequence_ = 0;
  std::uint32_t epoch_;
  std::uint32_t inline_bytes_;
  std::uint64_t ring_address_ = 0;
  RKey ring_rkey_;
  std::uint32_t send_slot_bytes_ = 0;
  std::uint32_t next_send_slot_ = 0;
  std::uint32_t next_control_slot_ = 0;

  // Read by every frame that comes in.
  std::uint32_t expected_sequence_ = 0;
  std::uint32_t frames_consumed_ = 0;
  std::uint32_t frames_told_ = 0;
  std::uint32_t lines_told_ = 0;
  WriteQueueReader reader_;
  std::uint32_t receive_slots_;
  std::uint32_t receive_slot_bytes_;
  std::uint32_t repost_batch_;
  std::uint32_t frame_credit_threshold_;
  std::uint32_t batched_ = 0;
  std::uint32_t batched_sequenced_ = 0;
  std::array<qp::ReceiveSlot, qp::max_receive_batch> batch_;

  SendShape send_shape_;
  mem::RegisteredRegion receive_region_;
  mem::RegisteredRegion send_region_;
  mem::RegisteredRegion mirror_;
  mem::RegisteredRegion ring_;
};

}  // namespace verbatim::transport
