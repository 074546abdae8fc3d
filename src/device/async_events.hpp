// What a device tells without being asked: a port went down, a QP failed, a table changed.
#pragma once

#include <infiniband/verbs.h>

#include <functional>
#include <variant>

#include "base/ids.hpp"
#include "device/context.hpp"

namespace verbatim::device {

// The part of the device that an event is about; monostate: all of it. Who handles an event looks at this first: an
// event of one port means nothing to the users of another.
using EventSubject = std::variant<std::monostate, PortNumber, ibv_cq*, ibv_qp*, ibv_srq*, ibv_wq*>;

// As ibv_get_async_event(3) says which member of the union is set.
[[nodiscard]] EventSubject subject_of(const ibv_async_event& event);

struct AsyncEvent {
  ibv_event_type type;
  EventSubject subject;
};

// More than any burst of a sane device. A storm may not hold the caller; what is left keeps the descriptor readable.
inline constexpr unsigned int max_events_per_drain = 4096;

struct Drained {
  unsigned int events = 0;
  int problem = 0;  // errno of a read that failed for another reason than emptiness: the device has gone
};

// Takes events until none is left, as one wake-up may stand for many, and hands each to `handler`. Never blocks: makes
// the async descriptor non-blocking. An object in an event stays valid until the handler returns, which is when the
// event is acknowledged; so the handler must not destroy it, because destroying waits for that acknowledgement.
Drained drain_async_events(Context& context, const std::function<void(const AsyncEvent&)>& handler);

}  // namespace verbatim::device
