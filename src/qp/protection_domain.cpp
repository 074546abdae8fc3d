#include "qp/protection_domain.hpp"

#include <cerrno>

#include "qp/device_failure.hpp"

namespace verbatim::qp {

ProtectionDomain::ProtectionDomain(device::Context& context) : context_(context), pd_(context.alloc_pd()) {
  if (pd_ == nullptr) fail("no protection domain on " + context.name(), errno);
  make_parent();
}

// A device without thread domains has locks instead.
void ProtectionDomain::make_parent() {
  ibv_td_init_attr thread_domain{};
  thread_domain_ = context_.alloc_td(thread_domain);
  if (thread_domain_ == nullptr) return;
  ibv_parent_domain_init_attr parent{};
  parent.pd = pd_;
  parent.td = thread_domain_;
  parent_ = context_.alloc_parent_domain(parent);
  if (parent_ != nullptr) return;
  context_.dealloc_td(thread_domain_);
  thread_domain_ = nullptr;
}

ProtectionDomain::~ProtectionDomain() {
  if (parent_ != nullptr) context_.dealloc_pd(parent_);
  if (thread_domain_ != nullptr) context_.dealloc_td(thread_domain_);
  context_.dealloc_pd(pd_);
}

}  // namespace verbatim::qp
