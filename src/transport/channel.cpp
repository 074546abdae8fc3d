// The life of a channel: it opens, it is closed, or it fails, and every request on it ends.
#include "transport/channel.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "transport/engine.hpp"

namespace verbatim::transport {

Channel::Channel(Engine& engine, ChannelId id, std::string peer) : engine_(engine), id_(id), peer_(std::move(peer)) {}

Turns& Channel::turns() const noexcept {
  return engine_.turns();
}

void Channel::open() {
  fragments_.resize(lane_->queue().sizes().send_slots);
  fragment_bytes_ = std::min(engine_.fragment_bytes(), max_message_bytes_);
  state_ = ChannelState::open;
  update_eager();
  engine_.touch(*this);
  for (const EarlyFrame& frame : std::exchange(early_, {})) on_received(frame.slot, frame.bytes);
}

void Channel::take_over(Channel& from) noexcept {
  lane_ = std::move(from.lane_);
  early_ = std::exchange(from.early_, {});
  first_psn_ = from.first_psn_;
  max_message_bytes_ = from.max_message_bytes_;
}

Request Channel::flush() {
  RequestState* request = engine_.requests().take(RequestKind::flush);
  return request != nullptr ? queue(*request) : refused(Status::no_resources);
}

Request Channel::close() {
  if (state_ == ChannelState::closed) return reason_ == Status::ok ? delivered_at_once() : refused(reason_);
  if (state_ == ChannelState::connecting && queued_.empty()) {
    engine_.say_bye(*this);
    return delivered_at_once();
  }
  RequestState* request = engine_.requests().take(RequestKind::close);
  if (request == nullptr) return refused(Status::no_resources);
  Request handle = queue(*request);
  close_asked_ = true;
  if (state_ == ChannelState::open) state_ = ChannelState::closing;
  update_eager();
  return handle;
}

void Channel::break_off(Status status, std::string sentence, Cause cause) {
  const bool counts =
      !broken_ || cause == Cause::hopeless || (broken_cause_ == Cause::consequence && cause != broken_cause_);
  if (!counts || (broken_ && broken_cause_ == Cause::hopeless)) return;
  broken_cause_ = cause;
  broken_ = true;
  broken_status_ = status;
  broken_text_ = std::move(sentence);
  eager_below_ = 0;
  engine_.touch(*this);
}

void Channel::refused_post(int problem) {
  break_off(Status::device_failed,
            "the device refused work for the channel to " + peer_ + ": " + std::generic_category().message(problem));
}

void Channel::shut(Status status, std::string sentence) {
  if (state_ == ChannelState::closed) return;
  state_ = ChannelState::closed;
  reason_ = status;
  reason_text_ = std::move(sentence);
  broken_ = false;
  eager_below_ = 0;
  const Status why = status == Status::ok ? Status::not_connected : status;
  // What is not with the device ends now.
  while (RequestState* request = queued_.pop_front()) {
    const bool one_sided = request->kind == RequestKind::put || request->kind == RequestKind::get;
    if (one_sided && request->posted_bytes != 0) {
      landing_.push_back(*request);
    } else {
      end(*request, Outcome::not_delivered, why);
    }
  }
  while (RequestState* request = waiting_.pop_front()) {
    const bool closed = request->kind == RequestKind::close && status == Status::ok;
    end(*request, closed ? Outcome::delivered : Outcome::not_delivered, closed ? Status::ok : why);
  }
  end_all(granting_, Outcome::not_delivered, why);
  // An offer that was not granted has moved no byte. Whether an atomic was executed, nobody here knows.
  while (RequestState* request = offered_.pop_front()) {
    end(*request, request->kind == RequestKind::send ? Outcome::not_delivered : Outcome::unknown, why);
  }
  engine_.forget_source(*this);
}

void Channel::retired() {
  const Status why = reason_ == Status::ok ? Status::not_connected : reason_;
  fragment_count_ = 0;
  lost_fragments_.clear();
  lost_frames_.clear();
  end_all(moving_, Outcome::not_delivered, why);
  // Bytes were with the device: the peer may have them all, or not. What was to come from it hasn't.
  while (RequestState* request = landing_.pop_front()) {
    end(*request, request->kind == RequestKind::get ? Outcome::not_delivered : Outcome::unknown, why);
  }
  end_all(incoming_, Outcome::not_delivered, why);
}

void Channel::end(RequestState& request, Outcome outcome, Status status) noexcept {
  if (request.leased) {
    request.lease = {};
    request.leased = false;
  }
  request.pool->end(request, outcome, status);
}

void Channel::end_all(RequestList& list, Outcome outcome, Status status) noexcept {
  while (RequestState* request = list.pop_front()) end(*request, outcome, status);
}

const ChannelCounters& Channel::counters() noexcept {
  if (lane_ != nullptr) {
    const qp::ReliableQueue::Counters& device = lane_->queue().counters();
    counters_.posts = posts_before_ + device.posts;
    counters_.signalled = signalled_before_ + device.signalled;
    counters_.receive_posts = receive_posts_before_ + device.receive_posts;
  }
  return counters_;
}

}  // namespace verbatim::transport
