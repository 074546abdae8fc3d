// What a channel does with the frames that come in.
#include <algorithm>
#include <cstring>

#include "transport/channel.hpp"
#include "transport/engine.hpp"

namespace verbatim::transport {
namespace {

template <typename Body>
[[nodiscard]] Body read(const std::byte* body) noexcept {
  Body value;
  std::memcpy(&value, body, sizeof(Body));
  return value;
}

[[nodiscard]] bool is_known(FrameKind kind) noexcept {
  return kind > FrameKind::none && kind <= FrameKind::credit;
}

}  // namespace

void Channel::on_received(std::uint32_t slot, std::uint32_t bytes) {
  if (state_ == ChannelState::connecting || suspended_) [[unlikely]]
    return early_.push_back({slot, bytes});
  if (deaf_) return;
  if (!lane_->has_receive_slot(slot)) return violate("a completion of a receive that was not posted");
  const std::byte* memory = lane_->receive_slot(slot);
  const auto& frame = *reinterpret_cast<const FrameHeader*>(memory);
  if (bytes < sizeof(FrameHeader) || bytes - sizeof(FrameHeader) != frame.length) {
    return violate("a frame shorter or longer than its header says");
  }
  const bool sequenced = is_sequenced(frame.kind);
  if (sequenced && frame.sequence != lane_->expected_sequence()) {
    // Written to the ring before this one was sent, so it is there.
    poll_write_queue(lane_->reader().lines());
    if (frame.sequence != lane_->expected_sequence()) return violate("a frame out of sequence");
  }
  on_frame(frame, memory + sizeof(FrameHeader));
  if (broken_) return;
  if (const int problem = lane_->give_back_receive(slot, sequenced); problem != 0) refused_post(problem);
}

unsigned Channel::poll_write_queue(unsigned limit) {
  WriteQueueReader& reader = lane_->reader();
  unsigned frames = 0;
  for (; frames < limit && !deaf_; ++frames) {
    const FrameHeader* frame = reader.peek();
    if (frame == nullptr) break;
    // Behind one that is still on its way through the queue pair.
    if (is_sequenced(frame->kind) && frame->sequence != lane_->expected_sequence()) break;
    on_frame(*frame, reinterpret_cast<const std::byte*>(frame + 1));
    reader.consume();
  }
  if (reader.broken()) violate("a record in the write queue that can't be");
  return frames;
}

void Channel::on_frame(const FrameHeader& frame, const std::byte* body) {
  const FrameKind kind = frame.kind;
  if (!is_known(kind)) return violate("a frame of no kind that is known");
  const std::uint32_t fixed = body_bytes(kind);
  if (frame.length < fixed || (frame.length != fixed && !carries_message(kind))) {
    return violate("a frame with too few or too many bytes");
  }
  if (frame.length - fixed > engine_.most_eager_bytes()) return violate("a frame longer than was agreed");
  if (frame.epoch != static_cast<std::uint16_t>(lane_->epoch())) return violate("a frame of another epoch");
  if (!lane_->on_credits(frame)) return violate("credits for more than was sent");
  if (is_sequenced(kind)) lane_->on_sequenced();
  if ((frame.flags == FrameFlag::headers_only) != peer_headers_only_) [[unlikely]] {
    peer_headers_only_ = !peer_headers_only_;
    update_eager();
  }

  switch (kind) {
    case FrameKind::eager:
      on_eager(frame, body);
      break;
    case FrameKind::ready_to_send:
      on_ready_to_send(frame, read<RendezvousOffer>(body));
      break;
    case FrameKind::clear_to_send:
      on_clear_to_send(read<RendezvousGrant>(body));
      break;
    case FrameKind::piece:
      on_piece(read<Piece>(body), body + sizeof(Piece), frame.length - fixed);
      break;
    case FrameKind::finished:
      on_finished(read<RendezvousEnd>(body));
      break;
    case FrameKind::atomic_request:
      on_atomic_request(read<AtomicRequest>(body));
      break;
    case FrameKind::atomic_reply:
      on_atomic_reply(read<AtomicReply>(body));
      break;
    case FrameKind::write_queue:
      on_write_queue(read<WriteQueueOffer>(body));
      break;
    case FrameKind::flush:
      owes_answer_ = true;
      break;
    case FrameKind::credit:
    case FrameKind::none:
      break;
  }
  if (has_something_to_push()) engine_.touch(*this);
}

void Channel::on_eager(const FrameHeader& frame, const std::byte* body) {
  ++counters_.messages_received;
  counters_.bytes_received += frame.length;
  const Tag tag{frame.tag};
  if (RequestState* receive = engine_.matcher().match(id_, tag); receive != nullptr) [[likely]] {
    Engine::deliver(*receive, body, frame.length, id_, tag);
    return;
  }
  Unexpected& message = *engine_.store().take(frame.length);
  message.source = id_;
  message.channel = this;
  message.tag = tag;
  message.bytes = frame.length;
  if (frame.length != 0) std::memcpy(message.payload, body, frame.length);
  engine_.matcher().add(message);
}

// The peer polls a ring for this channel: what is sent from now on goes there.
void Channel::on_write_queue(const WriteQueueOffer& offer) {
  const std::uint64_t least_lines = 4ULL * lines_of_record(slot_bytes_for(lane_->eager_bytes()));
  const bool fits = offer.lines >= least_lines && offer.lines <= most_lines && std::has_single_bit(offer.lines);
  if (!fits || lane_->writes_to_ring()) {
    return violate("a write queue of no use");
  }
  // Without memory for what is on its way, receives go on being used.
  std::optional<mem::RegisteredRegion> mirror =
      engine_.allocate_ring(std::size_t{offer.lines} * line_bytes, mem::Access::source);
  if (mirror) lane_->open_writer(offer, std::move(*mirror));
}

void Channel::violate(const char* what) {
  deaf_ = true;
  break_off(Status::device_failed,
            std::string("the peer's library broke the protocol: ") + what +
                "; is it of the same version, and its memory intact?",
            Cause::hopeless);
}

}  // namespace verbatim::transport
