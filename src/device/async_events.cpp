#include "device/async_events.hpp"

#include <fcntl.h>

#include <cerrno>

namespace verbatim::device {
namespace {

// An event that is not acknowledged blocks the destruction of its object for ever, so also when the handler throws.
class Acknowledgement {
 public:
  Acknowledgement(Context& context, ibv_async_event& event) : context_(context), event_(event) {}
  Acknowledgement(const Acknowledgement&) = delete;
  Acknowledgement& operator=(const Acknowledgement&) = delete;
  ~Acknowledgement() { context_.ack_async_event(event_); }

 private:
  Context& context_;
  ibv_async_event& event_;
};

}  // namespace

EventSubject subject_of(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return event.element.cq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return event.element.qp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return event.element.srq;
    case IBV_EVENT_WQ_FATAL:
      return event.element.wq;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return PortNumber{static_cast<std::uint8_t>(event.element.port_num)};
    case IBV_EVENT_DEVICE_FATAL:
      break;
  }
  return std::monostate{};
}

Drained drain_async_events(Context& context, const std::function<void(const AsyncEvent&)>& handler) {
  Drained drained;
  const int descriptor = context.handle()->async_fd;
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) return {0, errno};

  while (drained.events < max_events_per_drain) {
    ibv_async_event event{};
    if (context.get_async_event(event) != 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) drained.problem = errno;
      break;
    }
    ++drained.events;
    const Acknowledgement acknowledgement(context, event);
    handler({event.event_type, subject_of(event)});
  }
  return drained;
}

}  // namespace verbatim::device
