// Puts and gets, and the fragments in which they, and the bytes of a rendezvous, are given to the device.
#include <algorithm>

#include "transport/channel.hpp"
#include "transport/engine.hpp"

namespace verbatim::transport {

Request Channel::put(const void* data, std::size_t bytes, const RemoteRegion& target, std::uint64_t offset,
                     std::optional<Tag> notice) {
  // Not written to: the library's buffers are of one type.
  auto* const source = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  return one_sided(RequestKind::put, source, bytes, remote_range(target, bytes, offset), notice);
}

Request Channel::get(void* data, std::size_t bytes, const RemoteRegion& source, std::uint64_t offset) {
  return one_sided(RequestKind::get, static_cast<std::byte*>(data), bytes, remote_range(source, bytes, offset), {});
}

Request Channel::one_sided(RequestKind kind, std::byte* buffer, std::size_t bytes, const RemoteRange& range,
                           std::optional<Tag> notice) {
  if (buffer == nullptr && bytes != 0) return refused(Status::invalid_argument);
  if (!range.inside) return refused(Status::remote_access);
  RequestState* request = engine_.requests().take(kind);
  if (request == nullptr) return refused(Status::no_resources);
  request->buffer = buffer;
  request->capacity = request->moving_bytes = bytes;
  request->posted_bytes = request->moved_bytes = 0;
  request->remote_address = range.address;
  request->remote_rkey = range.rkey;
  request->wants_notice = notice.has_value();
  request->tag = notice.value_or(Tag{});
  return queue(*request);
}

// It stays at the head of the queue until all its bytes are posted, and the notice behind them: what comes later in the
// channel is posted later.
bool Channel::issue_put(RequestState& put) {
  const bool registered = put.moving_bytes <= lane_->queue().max_inline() || put.leased ||
                          engine_.lease(put, put.moving_bytes, mem::Access::source);
  if (!registered) {
    queued_.remove(put);
    end(put, Outcome::not_delivered, Status::no_resources);
    return true;
  }
  if (!post_fragments(put, static_cast<std::uint32_t>(fragments_.size()))) return false;
  if (put.wants_notice && !send_frame(nullptr, 0, put.tag)) return false;
  queued_.remove(put);
  land(put);
  return true;
}

bool Channel::issue_get(RequestState& get) {
  if (get.moving_bytes != 0 && !get.leased && !engine_.lease(get, get.moving_bytes, mem::Access::receive)) {
    queued_.remove(get);
    end(get, Outcome::not_delivered, Status::no_resources);
    return true;
  }
  if (!post_fragments(get, static_cast<std::uint32_t>(fragments_.size()))) return false;
  queued_.remove(get);
  land(get);
  return true;
}

void Channel::land(RequestState& request) {
  if (request.moved_bytes == request.moving_bytes) return end(request, Outcome::delivered, Status::ok);
  request.stage = RequestStage::landing;
  landing_.push_back(request);
}

bool Channel::post_fragments(RequestState& request, std::uint32_t most_on_the_way) {
  qp::ReliableQueue& queue = lane_->queue();
  while (request.posted_bytes < request.moving_bytes) {
    if (broken_ || fragment_count_ >= most_on_the_way || queue.send_slots_free() == 0) return false;
    const std::uint64_t left = request.moving_bytes - request.posted_bytes;
    const auto bytes = static_cast<std::uint32_t>(std::min(left, fragment_bytes_));
    if (!post_fragment(request, request.posted_bytes, bytes)) return false;
    request.posted_bytes += bytes;
  }
  return true;
}

bool Channel::post_fragment(RequestState& request, std::uint64_t offset, std::uint32_t bytes) {
  qp::ReliableQueue& queue = lane_->queue();
  const qp::RemotePlace place{request.remote_address + offset, RKey{request.remote_rkey}};
  const qp::Segment segment{request.buffer + offset, bytes, request.leased ? request.lease.lkey() : LKey{}};
  const std::uint32_t ordinal = queue.next_ordinal();
  const std::span<const qp::Segment> segments(&segment, 1);
  const int problem = request.kind == RequestKind::get
                          ? queue.post_read(lane_->epoch(), segments, place, qp::Signal::yes)
                          : queue.post_write(lane_->epoch(), segments, place, qp::Signal::yes,
                                             request.leased ? qp::Inline::no : qp::Inline::yes);
  if (problem != 0) {
    refused_post(problem);
    return false;
  }
  const auto last = (first_fragment_ + fragment_count_) % static_cast<std::uint32_t>(fragments_.size());
  fragments_[last] = {ordinal, bytes, lane_->next_sequence(), offset, &request};
  ++fragment_count_;
  return true;
}

void Channel::on_sent(const qp::WorkCompletion& completion) {
  lane_->queue().on_send_completed(completion.id);
  if (completion.failed()) return on_send_failed(completion.status);
  if (fragment_count_ != 0) on_fragments_done(completion.id.slot);
  if (has_something_to_push()) engine_.touch(*this);
}

void Channel::on_send_failed(qp::CompletionStatus status) {
  std::string sentence = "the queue pair to " + peer_ + " failed: " + to_string(status);
  switch (status) {
    case qp::CompletionStatus::flushed:
      return break_off(Status::device_failed, std::move(sentence), Cause::consequence);
    case qp::CompletionStatus::remote_access:
      return break_off(Status::remote_access, std::move(sentence) + "; a region of the peer is gone, or smaller",
                       Cause::hopeless);
    case qp::CompletionStatus::retries_exceeded:
      return break_off(Status::device_failed,
                       std::move(sentence) + "; the peer did not answer for rc.ack_timeout, rc.retry_count + 1 times");
    default:
      return break_off(Status::device_failed, std::move(sentence));
  }
}

// A send queue completes in order: this one and all before it are done.
void Channel::on_fragments_done(std::uint32_t ordinal) {
  while (fragment_count_ != 0) {
    const Fragment& oldest = fragments_[first_fragment_];
    const std::uint32_t behind = (ordinal - oldest.ordinal) & qp::WorkId::slot_mask;
    if (behind > qp::WorkId::slot_mask / 2) return;
    first_fragment_ = (first_fragment_ + 1) % static_cast<std::uint32_t>(fragments_.size());
    --fragment_count_;
    on_fragment_done(*oldest.request, oldest.bytes);
  }
}

void Channel::on_fragment_done(RequestState& request, std::uint32_t bytes) {
  request.moved_bytes += bytes;
  ++fragments_done_;
  if (request.stage != RequestStage::landing || request.moved_bytes != request.moving_bytes) return;
  landing_.remove(request);
  end(request, Outcome::delivered, Status::ok);
}

}  // namespace verbatim::transport
