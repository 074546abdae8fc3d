// SoftContext: completion queues, channels and events.
#include <algorithm>
#include <cerrno>
#include <chrono>

#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft {
namespace {

// How long destroying an object waits for events that the application took and did not acknowledge. Verbs lets it wait
// for ever (ibv_destroy_cq(3)); that has cost people days.
constexpr std::chrono::seconds event_acknowledge_limit{10};

}  // namespace

bool UnacknowledgedEvents::wait() {
  std::unique_lock lock(mutex_);
  return all_acknowledged_.wait_for(lock, event_acknowledge_limit, [&] { return acknowledged_ >= taken_; });
}

ibv_comp_channel* SoftContext::create_comp_channel() {
  if (forked_) return fail<ibv_comp_channel>(EPERM);
  auto* channel = new SoftChannel(events_mutex_);
  channel->context = handle();
  channel->fd = channel->events.fd();
  return channel;
}

int SoftContext::destroy_comp_channel(ibv_comp_channel* channel) {
  const EngineVisit visit(lock_);
  if (channel->refcnt > 0) return EBUSY;
  delete static_cast<SoftChannel*>(channel);
  return 0;
}

SoftQueue* SoftContext::make_cq(std::uint32_t cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector,
                                ibv_td* thread_domain) {
  if (forked_) return fail<SoftQueue>(EPERM);
  const EngineVisit visit(lock_);
  if (cqe == 0 || cqe > config_.limits.max_cqe || comp_vector != 0) return fail<SoftQueue>(EINVAL);
  if (cq_count_ >= config_.limits.max_cq) return fail<SoftQueue>(ENOMEM);
  ++cq_count_;
  auto* made = new SoftQueue(cqe, events_mutex_);
  made->context = handle();
  made->channel = channel;
  made->cq_context = cq_context;
  made->cqe = static_cast<int>(cqe);
  made->owner = this;
  made->thread_domain = thread_domain;
  if (channel != nullptr) ++channel->refcnt;
  object_made(thread_domain);
  return made;
}

ibv_cq* SoftContext::create_cq(int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) {
  if (cqe <= 0) return fail<ibv_cq>(EINVAL);
  SoftQueue* made = make_cq(static_cast<std::uint32_t>(cqe), cq_context, channel, comp_vector, nullptr);
  return made == nullptr ? nullptr : ibv_cq_ex_to_cq(made);
}

ibv_cq_ex* SoftContext::create_cq_ex(ibv_cq_init_attr_ex& attributes) {
  constexpr std::uint64_t provided = IBV_WC_STANDARD_FLAGS;
  constexpr std::uint32_t known_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  if ((attributes.wc_flags & ~provided) != 0 || (attributes.comp_mask & ~known_mask) != 0) {
    return fail<ibv_cq_ex>(EOPNOTSUPP);
  }
  const bool in_domain = (attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 && attributes.parent_domain != nullptr;
  ibv_td* thread_domain = in_domain ? static_cast<SoftDomain*>(attributes.parent_domain)->thread_domain : nullptr;
  SoftQueue* made = make_cq(attributes.cqe, attributes.cq_context, attributes.channel,
                            static_cast<int>(attributes.comp_vector), thread_domain);
  if (made != nullptr) fill_extended_poll(*made);
  return made;
}

int SoftContext::resize_cq(ibv_cq* cq, int cqe) {
  if (forked_) return EPERM;
  const EngineVisit visit(lock_);
  CompletionQueue& queue = SoftQueue::of(cq).queue;
  if (cqe <= 0 || static_cast<std::uint32_t>(cqe) > config_.limits.max_cqe ||
      static_cast<std::uint32_t>(cqe) < queue.size()) {
    return EINVAL;
  }
  queue.resize(static_cast<std::uint32_t>(cqe));
  cq->cqe = cqe;
  return 0;
}

int SoftContext::destroy_cq(ibv_cq* cq) {
  SoftQueue& queue = SoftQueue::of(cq);
  {
    const EngineVisit visit(lock_);
    if (queue.queue.users > 0) return EBUSY;
    queue.queue.armed = Arming::none;
  }
  auto* channel = static_cast<SoftChannel*>(queue.channel);
  if (channel != nullptr && !forked_) {
    channel->events.remove_if([&](const SoftQueue* about) { return about == &queue; });
    if (!queue.channel_events.wait()) return EBUSY;
  }
  if (!settle_async_events(cq, queue.async_events)) return EBUSY;
  const EngineVisit visit(lock_);
  if (channel != nullptr) --channel->refcnt;
  --cq_count_;
  object_gone(queue.thread_domain);
  delete &queue;
  return 0;
}

int SoftContext::get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  if (forked_) {
    errno = EPERM;
    return -1;
  }
  const auto about = static_cast<SoftChannel*>(channel)->events.take();
  if (!about) return -1;
  (*about)->channel_events.taken();
  *cq = ibv_cq_ex_to_cq(*about);
  *cq_context = (*about)->cq_context;
  return 0;
}

void SoftContext::ack_cq_events(ibv_cq* cq, unsigned int events) {
  SoftQueue::of(cq).channel_events.acknowledged(events);
}

// -- async events ----------------------------------------------------------------------------------------------------

namespace {

// Where an event is about an object, the count of its unacknowledged events.
UnacknowledgedEvents* events_of(const ibv_async_event& event) {
  const device::EventSubject subject = device::subject_of(event);
  if (auto* const* cq = std::get_if<ibv_cq*>(&subject)) return &SoftQueue::of(*cq).async_events;
  if (auto* const* qp = std::get_if<ibv_qp*>(&subject)) return &SoftQueuePair::of(*qp).async_events;
  if (auto* const* srq = std::get_if<ibv_srq*>(&subject)) return &SoftSharedReceiveQueue::of(*srq).async_events;
  return nullptr;
}

}  // namespace

int SoftContext::get_async_event(ibv_async_event& event) {
  if (forked_) {
    errno = EPERM;
    return -1;
  }
  const auto taken = async_events_.take();
  if (!taken) return -1;
  event = *taken;
  if (UnacknowledgedEvents* events = events_of(event)) events->taken();
  return 0;
}

void SoftContext::ack_async_event(ibv_async_event& event) {
  if (UnacknowledgedEvents* events = events_of(event)) events->acknowledged(1);
}

void SoftContext::completion_event(CompletionQueue& cq) {
  SoftQueue& queue = SoftQueue::of(cq);
  if (queue.channel != nullptr) static_cast<SoftChannel*>(queue.channel)->events.push(&queue);
}

void SoftContext::queue_pair_event(QueuePair& queue_pair, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = &SoftQueuePair::of(queue_pair).qp_base;
  async_events_.push(event);
}

void SoftContext::queue_event(CompletionQueue& cq, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.cq = ibv_cq_ex_to_cq(&SoftQueue::of(cq));
  async_events_.push(event);
}

void SoftContext::queue_event(SharedReceiveQueue& srq, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.srq = &SoftSharedReceiveQueue::of(srq);
  async_events_.push(event);
}

void SoftContext::port_event(std::uint8_t port, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  async_events_.push(event);
}

}  // namespace verbatim::soft
