// What only the soft device can do: change its tables and break on command, while it runs. For tests of one's own.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "device/context.hpp"
#include "device/soft/config.hpp"

namespace verbatim::soft {

class Control {
 public:
  virtual ~Control() = default;

  // A port that is not there: throws Error(not_found) naming those that are.
  // Each change of a table or port raises the async event that hardware would raise, with the port's number.
  virtual void set_port_active(std::uint8_t port, bool active) = 0;
  virtual void set_active_mtu(std::uint8_t port, ibv_mtu mtu) = 0;
  virtual void set_gid(std::uint8_t port, std::uint32_t index,
                       const GidConfig& gid) = 0;  // an all-zero GID empties the entry
  virtual void set_pkey(std::uint8_t port, std::uint32_t index, std::uint16_t pkey) = 0;  // 0 empties the entry

  // From now on. An empty plan heals the device; packets held back by the old plan are lost.
  virtual void set_faults(const FaultPlan& plan) = 0;
  // The queue pair goes to ERR as from an internal error: its requests flush, IBV_EVENT_QP_FATAL is raised.
  virtual void kill(ibv_qp* qp) = 0;
};

// The control of a context that a soft provider opened; nullptr for any other.
[[nodiscard]] Control* control_of(device::Context& context);

}  // namespace verbatim::soft
