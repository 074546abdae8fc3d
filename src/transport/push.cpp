// What a channel sends: at once, or when there is room for it.
#include "transport/channel.hpp"
#include "transport/engine.hpp"

namespace verbatim::transport {

// In the order of what others wait for most.
void Channel::push() {
  if ((state_ != ChannelState::open && state_ != ChannelState::closing) || broken_ || suspended_) return;
  // 0. What was under way when a queue pair failed.
  if (replaying_ && !replay()) return settle_credits();
  // 1. Grants, and the answers to atomics: the peer waits for them.
  while (!broken_ && !granting_.empty() && grant(*granting_.front())) {
  }
  if (!broken_) (void)reply_atomics();
  // 2. The bytes of messages that the peer has granted.
  while (!broken_ && !moving_.empty() && move(*moving_.front())) {
  }
  // 3. What the user asked for, in the order asked.
  while (!broken_ && !queued_.empty() && issue(*queued_.front())) {
  }
  update_eager();
  if (broken_) return;
  // 4. A write queue, if the peer sends much.
  offer_write_queue();
  // 5. Flushes, and the close behind them.
  settle_flushes();
  // 6. Credits that nothing else has carried.
  settle_credits();
}

bool Channel::has_something_to_push() const noexcept {
  return owes_answer_ || replaying_ || !queued_.empty() || !granting_.empty() || !moving_.empty() ||
         !waiting_.empty() || reply_count_ != 0 || lane_->owes_credit() ||
         (!write_queue_offered_ && counters_.messages_received >= engine_.promote_after());
}

Request Channel::send_later(const void* data, std::size_t bytes, Tag tag) {
  if (data == nullptr && bytes != 0) return refused(Status::invalid_argument);
  RequestState* send = engine_.requests().take(RequestKind::send);
  if (send == nullptr) return refused(Status::no_resources);
  // Not written to: the library's buffers are of one type.
  send->buffer = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  send->capacity = bytes;
  send->tag = tag;
  return queue(*send);
}

Request Channel::queue(RequestState& request) {
  Request handle(request);
  request.channel = this;
  if (state_ == ChannelState::closed || (close_asked_ && request.kind != RequestKind::close)) {
    engine_.requests().end(request, Outcome::not_delivered, reason_ == Status::ok ? Status::not_connected : reason_);
    return handle;
  }
  request.stage = RequestStage::queued;
  request.order = next_order_++;
  queued_.push_back(request);
  eager_below_ = 0;  // what comes later may not overtake it
  push();
  return handle;
}

bool Channel::issue(RequestState& request) {
  switch (request.kind) {
    case RequestKind::send:
      return goes_eagerly(request) ? send_eager(request) : offer(request);
    case RequestKind::put:
      return issue_put(request);
    case RequestKind::get:
      return issue_get(request);
    case RequestKind::fetch_add:
    case RequestKind::compare_swap:
      return ask_atomic(request);
    case RequestKind::flush:
    case RequestKind::close:
      queued_.remove(request);
      request.stage = RequestStage::waiting;
      waiting_.push_back(request);
      return true;
    case RequestKind::receive:
      break;
  }
  return false;
}

// One that has to wait for room stays eager: its turn comes, and by an offer it would travel three times.
bool Channel::goes_eagerly(const RequestState& send) const noexcept {
  return !peer_headers_only_ && send.capacity <= lane_->eager_bytes();
}

bool Channel::send_eager(RequestState& request) {
  if (!send_frame(request.buffer, static_cast<std::uint32_t>(request.capacity), request.tag)) {
    ++counters_.waited_for_credit;
    return false;
  }
  queued_.remove(request);
  end(request, Outcome::accepted, Status::ok);
  return true;
}

void Channel::update_eager() noexcept {
  const bool may =
      state_ == ChannelState::open && queued_.empty() && !peer_headers_only_ && !broken_ && !suspended_ && !replaying_;
  eager_below_ = may ? std::uint64_t{lane_->eager_bytes()} + 1 : 0;
}

FrameFlag Channel::our_flags() const noexcept {
  return engine_.store().full() ? FrameFlag::headers_only : FrameFlag::none;
}

// A ring of ours, if this channel has earned one and the worker polls few enough. The peer uses it from when it reads
// the offer; there is nothing to agree on.
void Channel::offer_write_queue() {
  if (write_queue_offered_ || counters_.messages_received < engine_.promote_after()) return;
  if (!lane_->has_reader()) {
    std::optional<mem::RegisteredRegion> ring = engine_.allocate_write_queue(*this);
    if (!ring) {
      write_queue_offered_ = true;  // not asked again
      return;
    }
    lane_->open_reader(std::move(*ring));
    engine_.poll_write_queue_of(*this);
  }
  write_queue_offered_ = send_body(FrameKind::write_queue, Tag{}, lane_->offer());
}

bool Channel::outstanding_before(std::uint64_t order) const noexcept {
  for (const RequestList* list : {&offered_, &moving_, &landing_}) {
    for (const RequestState* request = list->front(); request != nullptr; request = RequestList::after(*request)) {
      if (request->order < order) return true;
    }
  }
  return false;
}

// One at a time: a second flush frame goes out only when the answer to the first is here.
void Channel::settle_flushes() {
  while (RequestState* request = waiting_.front()) {
    if (outstanding_before(request->order)) return;
    if (!flush_asked_) {
      flush_position_ = lane_->sent();
      if (!lane_->peer_has(flush_position_)) {
        std::byte* const frame = lane_->begin(0);
        if (frame == nullptr) return;
        (void)commit(frame, FrameKind::flush, 0, Tag{});
        flush_asked_ = true;
      }
    }
    if (!lane_->peer_has(flush_position_)) return;
    flush_asked_ = false;
    waiting_.remove(*request);
    if (request->kind == RequestKind::close) {
      engine_.say_bye(*this);
      end(*request, Outcome::delivered, Status::ok);
      return;
    }
    end(*request, Outcome::delivered, Status::ok);
  }
}

void Channel::settle_credits() {
  if (broken_ || lane_ == nullptr) return;
  if (owes_answer_) {
    if (const int problem = lane_->repost(); problem != 0) return refused_post(problem);
  }
  if (lane_->owes_credit() || (owes_answer_ && lane_->owes_anything())) {
    const std::uint64_t before = lane_->queue().counters().posts;
    if (const int problem = lane_->send_credit(our_flags()); problem != 0) return refused_post(problem);
    if (lane_->queue().counters().posts == before) return;  // no room: still owed
    ++counters_.credit_messages;
  }
  owes_answer_ = false;
}

}  // namespace verbatim::transport
