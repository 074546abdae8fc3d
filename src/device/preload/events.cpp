// ibv_*: events (ibv_get_cq_event(3), ibv_get_async_event(3)).
#include <infiniband/verbs.h>

#include <variant>

#include "device/async_events.hpp"
#include "device/preload/real.hpp"
#include "device/preload/soft_devices.hpp"

using verbatim::device::Context;
using verbatim::preload::soft_of;

namespace {

// Whose object an event is about; nullptr: a port's or a device's, which nobody acknowledges.
const ibv_context* context_of(const ibv_async_event& event) {
  return std::visit(
      [](auto subject) -> const ibv_context* {
        if constexpr (requires { subject->context; }) return subject->context;
        return nullptr;
      },
      verbatim::device::subject_of(event));
}

void ack_real_event(ibv_async_event* event) {
  static auto* const real = verbatim::preload::find_real<decltype(ibv_ack_async_event)>("ibv_ack_async_event");
  if (real != nullptr) real(event);
}

void ack_real_events(ibv_cq* cq, unsigned int count) {
  static auto* const real = verbatim::preload::find_real<decltype(ibv_ack_cq_events)>("ibv_ack_cq_events");
  if (real != nullptr) real(cq, count);
}

}  // namespace

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (Context* soft = soft_of(context)) return soft->create_comp_channel();
  VERBATIM_CALL_REAL(ibv_create_comp_channel, nullptr, context);
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  if (Context* soft = soft_of(channel->context)) return soft->destroy_comp_channel(channel);
  VERBATIM_CALL_REAL(ibv_destroy_comp_channel, errno, channel);
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  if (Context* soft = soft_of(channel->context)) return soft->get_cq_event(channel, cq, cq_context);
  VERBATIM_CALL_REAL(ibv_get_cq_event, -1, channel, cq, cq_context);
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned int count) {
  if (Context* soft = soft_of(cq->context)) return soft->ack_cq_events(cq, count);
  ack_real_events(cq, count);
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  if (Context* soft = soft_of(context)) return soft->get_async_event(*event);
  VERBATIM_CALL_REAL(ibv_get_async_event, -1, context, event);
}

void ibv_ack_async_event(ibv_async_event* event) {
  const ibv_context* const context = context_of(*event);
  Context* const soft = context != nullptr ? soft_of(context) : nullptr;
  if (soft != nullptr) return soft->ack_async_event(*event);
  ack_real_event(event);
}

}  // extern "C"
