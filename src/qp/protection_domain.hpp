// What a worker's objects belong to: a protection domain for its memory and, where the device offers one, a thread
// domain for its queues, which spares them locks because one thread alone uses them.
#pragma once

#include <infiniband/verbs.h>

#include "device/context.hpp"

namespace verbatim::qp {

class ProtectionDomain {
 public:
  // Throws Error(device_failure). `context` must outlive it; it must outlive all that is made in it.
  explicit ProtectionDomain(device::Context& context);
  ~ProtectionDomain();
  ProtectionDomain(const ProtectionDomain&) = delete;
  ProtectionDomain& operator=(const ProtectionDomain&) = delete;

  // For memory.
  [[nodiscard]] ibv_pd* handle() const noexcept { return pd_; }
  // For queue pairs.
  [[nodiscard]] ibv_pd* for_queue_pairs() const noexcept { return parent_ != nullptr ? parent_ : pd_; }
  // For completion queues; nullptr where the device has no thread domains.
  [[nodiscard]] ibv_pd* parent() const noexcept { return parent_; }

 private:
  void make_parent();

  device::Context& context_;
  ibv_pd* pd_ = nullptr;
  ibv_td* thread_domain_ = nullptr;  // both or none
  ibv_pd* parent_ = nullptr;
};

}  // namespace verbatim::qp
