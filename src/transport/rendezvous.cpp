// Messages that don't travel with their header: offered, granted when a receive has matched, and then written straight
// into the receiver's buffer. Short ones, and those whose buffer can't be registered at either end, come in pieces
// instead, copied through the lane's own memory.
#include <algorithm>
#include <cstring>

#include "transport/channel.hpp"
#include "transport/engine.hpp"

namespace verbatim::transport {

bool Channel::offer(RequestState& send) {
  if (!send_body(FrameKind::ready_to_send, send.tag, RendezvousOffer{.bytes = send.capacity, .send = send.id()})) {
    return false;
  }
  queued_.remove(send);
  send.stage = RequestStage::offered;
  offered_.push_back(send);
  ++counters_.messages_sent;
  counters_.bytes_sent += send.capacity;
  return true;
}

void Channel::on_ready_to_send(const FrameHeader& frame, const RendezvousOffer& offer) {
  ++counters_.messages_received;
  counters_.bytes_received += offer.bytes;
  const Tag tag{frame.tag};
  if (RequestState* receive = engine_.matcher().match(id_, tag); receive != nullptr) {
    take_offer(*receive, offer.send, offer.bytes, tag);
    return;
  }
  Unexpected& message = *engine_.store().take(0);
  message.source = id_;
  message.channel = this;
  message.tag = tag;
  message.bytes = offer.bytes;
  message.offer = offer.send;
  engine_.matcher().add(message);
}

void Channel::take_offer(RequestState& receive, PeerRequest send, std::uint64_t bytes, Tag tag) {
  receive.channel = this;
  receive.peer = send;
  receive.completion.source = id_;
  receive.completion.tag = tag;
  receive.completion.bytes = bytes;
  receive.moving_bytes = std::min(bytes, receive.capacity);
  receive.moved_bytes = 0;
  receive.stage = RequestStage::granting;
  granting_.push_back(receive);
  engine_.touch(*this);
}

bool Channel::grant(RequestState& receive) {
  const bool worth_it = receive.moving_bytes > lane_->eager_bytes();
  const bool written = worth_it && engine_.lease(receive, receive.moving_bytes, mem::Access::write_target);
  RendezvousGrant grant{.send = receive.peer, .receive = receive.id(), .bytes = receive.moving_bytes};
  if (written) {
    grant.address = reinterpret_cast<std::uintptr_t>(receive.buffer);
    grant.rkey = receive.lease.rkey().value;
  }
  if (!send_body(FrameKind::clear_to_send, Tag{}, grant)) return false;
  granting_.remove(receive);
  receive.stage = RequestStage::moving;
  incoming_.push_back(receive);
  return true;
}

void Channel::on_clear_to_send(const RendezvousGrant& grant) {
  RequestState* send = engine_.requests().find(grant.send);
  if (send == nullptr || send->channel != this || send->stage != RequestStage::offered ||
      send->kind != RequestKind::send || grant.bytes > send->capacity) {
    return violate("a grant of what was not offered");
  }
  send->peer = grant.receive;
  send->remote_address = grant.address;
  send->remote_rkey = grant.rkey;
  send->moving_bytes = grant.bytes;
  send->posted_bytes = send->moved_bytes = 0;
  if (grant.rkey != 0 && !engine_.lease(*send, grant.bytes, mem::Access::source)) send->remote_rkey = 0;
  offered_.remove(*send);
  send->stage = RequestStage::moving;
  moving_.push_back(*send);
}

// The end frame goes right behind the last write: a reliable connection executes in order, so whoever reads it has the
// bytes.
bool Channel::move(RequestState& send) {
  const bool in_pieces = send.remote_rkey == 0;
  const bool all = in_pieces ? send_pieces(send) : post_fragments(send, engine_.fragments_on_the_way());
  if (!all || !send_body(FrameKind::finished, send.tag, RendezvousEnd{.receive = send.peer})) return false;
  moving_.remove(send);
  if (in_pieces) {
    end(send, Outcome::accepted, Status::ok);  // the lane has all of them, like those of eager sends
  } else {
    land(send);
  }
  return true;
}

bool Channel::send_pieces(RequestState& send) {
  const std::uint64_t most = lane_->eager_bytes() - sizeof(Piece);
  while (send.posted_bytes < send.moving_bytes) {
    const auto bytes = static_cast<std::uint32_t>(std::min(most, send.moving_bytes - send.posted_bytes));
    const auto length = static_cast<std::uint32_t>(sizeof(Piece)) + bytes;
    std::byte* const frame = lane_->begin(length);
    if (frame == nullptr) return false;
    const Piece piece{.receive = send.peer, .offset = send.posted_bytes};
    std::byte* const body = body_of(frame);
    std::memcpy(body, &piece, sizeof(piece));
    std::memcpy(body + sizeof(piece), send.buffer + send.posted_bytes, bytes);
    if (!commit(frame, FrameKind::piece, length, send.tag)) return false;
    send.posted_bytes += bytes;
  }
  return true;
}

// The receive that the peer means; nullptr if none of this channel's was granted.
RequestState* Channel::find_granted(PeerRequest id) {
  RequestState* receive = engine_.receives().find(id);
  const bool granted = receive != nullptr && receive->channel == this && receive->stage == RequestStage::moving;
  return granted ? receive : nullptr;
}

void Channel::on_piece(const Piece& piece, const std::byte* bytes, std::uint32_t count) {
  RequestState* receive = find_granted(piece.receive);
  if (receive == nullptr) return violate("a piece of what was not granted");
  if (piece.offset > receive->moving_bytes || count > receive->moving_bytes - piece.offset) {
    return violate("a piece outside of what was granted");
  }
  if (count != 0) std::memcpy(receive->buffer + piece.offset, bytes, count);
}

void Channel::on_finished(const RendezvousEnd& end_frame) {
  RequestState* receive = find_granted(end_frame.receive);
  if (receive == nullptr) return violate("the end of what was not granted");
  incoming_.remove(*receive);
  end(*receive, Outcome::delivered, receive->completion.bytes > receive->capacity ? Status::truncated : Status::ok);
}

}  // namespace verbatim::transport
