// Atomics as messages: in the channel's order, executed by the target's worker, so exactly once.
#include <atomic>

#include "transport/channel.hpp"
#include "transport/engine.hpp"

namespace verbatim::transport {
namespace {

[[nodiscard]] std::uint64_t execute(const AtomicRequest& request) noexcept {
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(request.address));
  if (request.kind == AtomicKind::fetch_add) return word.fetch_add(request.operand);
  std::uint64_t before = request.operand;
  word.compare_exchange_strong(before, request.swap);
  return before;
}

}  // namespace

Request Channel::atomic(RequestKind kind, const AtomicOperands& operands, const RemoteRegion& target,
                        std::uint64_t offset) {
  const RemoteRange range = remote_range(target, sizeof(std::uint64_t), offset);
  if (!range.inside) return refused(Status::remote_access);
  if (range.address % sizeof(std::uint64_t) != 0) return refused(Status::invalid_argument);
  RequestState* request = engine_.requests().take(kind);
  if (request == nullptr) return refused(Status::no_resources);
  request->operand = operands.operand;
  request->swap = operands.swap;
  request->before = operands.before;
  request->remote_address = range.address;
  request->remote_rkey = range.rkey;
  return queue(*request);
}

bool Channel::ask_atomic(RequestState& request) {
  if (atomics_out_ == max_atomics) return false;
  const AtomicRequest body{
      .request = request.id(),
      .address = request.remote_address,
      .operand = request.operand,
      .swap = request.swap,
      .kind = request.kind == RequestKind::fetch_add ? AtomicKind::fetch_add : AtomicKind::compare_swap,
      .rkey = request.remote_rkey};
  if (!send_body(FrameKind::atomic_request, Tag{}, body)) return false;
  ++atomics_out_;
  queued_.remove(request);
  request.stage = RequestStage::offered;
  offered_.push_back(request);
  return true;
}

void Channel::on_atomic_request(const AtomicRequest& request) {
  if (reply_count_ == max_atomics) return violate("more atomics under way than it may have");
  const bool known = request.kind == AtomicKind::fetch_add || request.kind == AtomicKind::compare_swap;
  if (!known || request.address % sizeof(std::uint64_t) != 0) return violate("an atomic that can't be");
  AtomicReply reply{.request = request.request};
  if (engine_.owns_region(request.rkey, request.address, sizeof(std::uint64_t))) {
    reply.before = execute(request);
  } else {
    reply.refused = 1;
  }
  replies_[(first_reply_ + reply_count_++) % max_atomics] = reply;
}

bool Channel::reply_atomics() {
  while (reply_count_ != 0) {
    if (!send_body(FrameKind::atomic_reply, Tag{}, replies_[first_reply_])) return false;
    first_reply_ = (first_reply_ + 1) % max_atomics;
    --reply_count_;
  }
  return true;
}

void Channel::on_atomic_reply(const AtomicReply& reply) {
  RequestState* request = engine_.requests().find(reply.request);
  const bool is_atomic =
      request != nullptr && (request->kind == RequestKind::fetch_add || request->kind == RequestKind::compare_swap);
  if (!is_atomic || request->channel != this || request->stage != RequestStage::offered) {
    return violate("a reply to what was not asked");
  }
  --atomics_out_;
  offered_.remove(*request);
  if (reply.refused != 0) return end(*request, Outcome::not_delivered, Status::remote_access);
  if (request->before != nullptr) *request->before = reply.before;
  end(*request, Outcome::delivered, Status::ok);
}

}  // namespace verbatim::transport
