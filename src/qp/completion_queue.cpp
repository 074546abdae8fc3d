#include "qp/completion_queue.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "base/log.hpp"
#include "qp/device_failure.hpp"

namespace verbatim::qp {

CompletionQueue::CompletionQueue(device::Context& context, const ProtectionDomain& domain, std::uint32_t initial,
                                 std::uint32_t max)
    : context_(context) {
  ibv_device_attr_ex device{};
  if (const int problem = context.query_device(device)) fail("limits of " + context.name(), problem);
  limit_ = std::min(max, static_cast<std::uint32_t>(std::max(device.orig_attr.max_cqe, 0)));
  try {
    make_channel();
    make_queue(domain, std::clamp(initial, 1U, std::max(limit_, 1U)));
  } catch (...) {
    destroy();
    throw;
  }
}

CompletionQueue::~CompletionQueue() {
  destroy();
}

void CompletionQueue::destroy() noexcept {
  if (cq_ != nullptr) {
    if (const int problem = context_.destroy_cq(cq_)) {
      log().warn("a completion queue of {} could not be destroyed and is lost: {}", context_.name(), words_of(problem));
    }
  }
  if (channel_ != nullptr) context_.destroy_comp_channel(channel_);
}

void CompletionQueue::make_channel() {
  channel_ = context_.create_comp_channel();
  if (channel_ == nullptr) fail("no completion channel on " + context_.name(), errno);
  const int flags = fcntl(channel_->fd, F_GETFL);
  if (flags < 0 || fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    fail("completion channel of " + context_.name() + " not to block", errno);
  }
}

void CompletionQueue::make_queue(const ProtectionDomain& domain, std::uint32_t entries) {
  if (domain.parent() != nullptr) {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = entries;
    attributes.channel = channel_;
    attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    attributes.parent_domain = domain.parent();
    if (ibv_cq_ex* made = context_.create_cq_ex(attributes)) cq_ = ibv_cq_ex_to_cq(made);
  }
  // Without thread domains, or where they are not for completion queues.
  if (cq_ == nullptr) cq_ = context_.create_cq(static_cast<int>(entries), nullptr, channel_, 0);
  if (cq_ == nullptr) fail(fmt::format("no completion queue of {} entries on {}", entries, context_.name()), errno);
  capacity_ = static_cast<std::uint32_t>(cq_->cqe);
  limit_ = std::max(limit_, capacity_);
}

std::optional<Error> CompletionQueue::reserve(std::uint32_t entries) {
  const std::uint64_t needed = std::uint64_t{reserved_} + entries;
  if (needed > capacity_ && !grow_to(needed)) {
    return Error(
        ErrorCode::no_space,
        fmt::format("completion queue on {}: {} of {} entries are taken, and {} more are needed; it can't grow "
                    "further: close channels, or give each fewer slots",
                    context_.name(), reserved_, capacity_, entries));
  }
  reserved_ += entries;
  return std::nullopt;
}

// By doubling, so that it is seldom; where the device doesn't give that, by what is needed. Devices that can't resize
// are refused room, not overrun.
bool CompletionQueue::grow_to(std::uint64_t needed) {
  if (needed > limit_) return false;
  const std::uint64_t doubled = std::min<std::uint64_t>(std::max(needed, 2 * std::uint64_t{capacity_}), limit_);
  if (context_.resize_cq(cq_, static_cast<int>(doubled)) != 0 &&
      context_.resize_cq(cq_, static_cast<int>(needed)) != 0) {
    return false;
  }
  capacity_ = static_cast<std::uint32_t>(cq_->cqe);
  return needed <= capacity_;
}

void CompletionQueue::seen_empty() noexcept {
  reserved_ -= left_behind_;
  left_behind_ = 0;
}

unsigned CompletionQueue::drain_events() {
  unsigned events = 0;
  ibv_cq* about = nullptr;
  void* context = nullptr;
  while (context_.get_cq_event(channel_, &about, &context) == 0) ++events;
  if (events > 0) context_.ack_cq_events(cq_, events);
  return events;
}

}  // namespace verbatim::qp
