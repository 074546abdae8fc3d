// What a channel keeps when its lane is taken away, and how it goes on with another. Exactly once: every frame has a
// number; the peer says which it expects next; the ones before that it has taken, and those from there on are sent
// again, as they were. A reliable connection executes in order, so a write has been executed if any frame behind it has
// been taken; all others are executed again, before any frame is sent.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "transport/channel.hpp"
#include "transport/engine.hpp"

namespace verbatim::transport {

std::uint64_t Channel::progress_made() const noexcept {
  const std::uint64_t taken = taken_by_peer_ + (suspended_ ? 0 : lane_->taken_by_peer());
  return fragments_done_ + counters_.messages_received + expected_sequence() + taken;
}

void Channel::suspend() {
  if (!suspended_) {
    expected_sequence_ = lane_->expected_sequence();
    // What is still to be sent again has the higher numbers.
    std::deque<LostFrame> lost;
    for (const FrameHeader* frame : lane_->frames_on_the_way()) {
      const auto* const body = reinterpret_cast<const std::byte*>(frame + 1);
      lost.push_back({frame->kind, frame->sequence, Tag{frame->tag}, {body, body + frame->length}});
    }
    std::ranges::move(lost_frames_, std::back_inserter(lost));
    lost_frames_ = std::move(lost);
    if (!replaying_) next_sequence_ = lane_->next_sequence();
    std::deque<Fragment> under_way;
    for (; fragment_count_ != 0; --fragment_count_) {
      under_way.push_back(fragments_[first_fragment_]);
      first_fragment_ = (first_fragment_ + 1) % static_cast<std::uint32_t>(fragments_.size());
    }
    std::ranges::move(lost_fragments_, std::back_inserter(under_way));
    lost_fragments_ = std::move(under_way);
  }
  suspended_ = true;
  replaying_ = false;
  broken_ = false;
  // The next lane begins without a write queue, and counts from its own start.
  write_queue_offered_ = false;
  flush_asked_ = false;
  early_.clear();
  update_eager();
}

bool Channel::resume(std::uint32_t next_expected_by_peer) {
  while (!lost_frames_.empty() &&
         static_cast<std::int32_t>(lost_frames_.front().sequence - next_expected_by_peer) < 0) {
    lost_frames_.pop_front();
  }
  const std::uint32_t first = lost_frames_.empty() ? next_sequence_ : lost_frames_.front().sequence;
  if (first != next_expected_by_peer) return false;
  lane_->continue_at(next_expected_by_peer, expected_sequence_);
  settle_lost_fragments(next_expected_by_peer);
  taken_by_peer_ = next_expected_by_peer;
  suspended_ = false;
  replaying_ = true;
  engine_.touch(*this);
  for (const EarlyFrame& frame : std::exchange(early_, {})) on_received(frame.slot, frame.bytes);
  return true;
}

void Channel::settle_lost_fragments(std::uint32_t next_expected_by_peer) {
  std::deque<Fragment> again;
  for (const Fragment& fragment : std::exchange(lost_fragments_, {})) {
    const bool executed = static_cast<std::int32_t>(next_expected_by_peer - fragment.next_sequence) > 0;
    if (executed && fragment.request->kind != RequestKind::get) {
      on_fragment_done(*fragment.request, fragment.bytes);
    } else {
      again.push_back(fragment);
    }
  }
  lost_fragments_ = std::move(again);
}

bool Channel::replay() {
  for (; !lost_fragments_.empty(); lost_fragments_.pop_front()) {
    const Fragment& fragment = lost_fragments_.front();
    if (lane_->queue().send_slots_free() == 0 || fragment_count_ == fragments_.size()) return false;
    if (!post_fragment(*fragment.request, fragment.offset, fragment.bytes)) return false;
  }
  for (; !lost_frames_.empty(); lost_frames_.pop_front()) {
    const LostFrame& lost = lost_frames_.front();
    // The ring that it offered went with the lane. A flush asks for nothing but credits, and keeps the count.
    const bool obsolete = lost.kind == FrameKind::write_queue;
    const auto length = obsolete ? 0U : static_cast<std::uint32_t>(lost.body.size());
    std::byte* const frame = lane_->begin(length);
    if (frame == nullptr) return false;
    if (length != 0) std::memcpy(body_of(frame), lost.body.data(), length);
    if (!commit(frame, obsolete ? FrameKind::flush : lost.kind, length, lost.tag)) return false;
    ++counters_.replayed;
  }
  replaying_ = false;
  return true;
}

}  // namespace verbatim::transport
