// SoftContext: protection domains, thread domains and memory.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft {
namespace {

// Whether every page of the range is mapped: registering what is not there fails, as pinning it would.
bool is_mapped(const void* address, std::size_t length) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(address) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(address) + length;
  std::array<unsigned char, 1024> present;
  for (std::uintptr_t at = begin; at < end; at += present.size() * page) {
    const std::size_t bytes = std::min<std::size_t>(end - at, present.size() * page);
    if (mincore(reinterpret_cast<void*>(at), bytes, present.data()) != 0) return false;
  }
  return true;
}

template <typename Object>
Object* fail(int error) {
  errno = error;
  return nullptr;
}

}  // namespace

ibv_pd* SoftContext::alloc_pd() {
  const EngineVisit visit(lock_);
  if (domain_count_ >= config_.limits.max_pd) return fail<ibv_pd>(ENOMEM);
  ++domain_count_;
  auto* domain = new SoftDomain{};
  domain->context = handle();
  domain->id = next_domain_++;
  domain->handle = domain->id;
  return domain;
}

int SoftContext::dealloc_pd(ibv_pd* pd) {
  const EngineVisit visit(lock_);
  auto* domain = static_cast<SoftDomain*>(pd);
  if (domain->users > 0) return EBUSY;
  if (domain->parent_of != nullptr) {
    --domain->parent_of->users;
    if (domain->thread_domain != nullptr) --static_cast<SoftThreadDomain*>(domain->thread_domain)->users;
  } else {
    --domain_count_;
  }
  delete domain;
  return 0;
}

ibv_td* SoftContext::alloc_td(ibv_td_init_attr& attributes) {
  if (attributes.comp_mask != 0) return fail<ibv_td>(EOPNOTSUPP);
  auto* made = new SoftThreadDomain{};
  made->context = handle();
  return made;
}

int SoftContext::dealloc_td(ibv_td* td) {
  const EngineVisit visit(lock_);
  auto* domain = static_cast<SoftThreadDomain*>(td);
  if (domain->users > 0) return EBUSY;
  delete domain;
  return 0;
}

ibv_pd* SoftContext::alloc_parent_domain(ibv_parent_domain_init_attr& attributes) {
  // Custom allocators would be for memory that a device reads; ours is read by nobody else.
  if (attributes.pd == nullptr) return fail<ibv_pd>(EINVAL);
  if ((attributes.comp_mask & ~static_cast<std::uint32_t>(IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) != 0) {
    return fail<ibv_pd>(EOPNOTSUPP);
  }
  const EngineVisit visit(lock_);
  auto* beneath = static_cast<SoftDomain*>(attributes.pd);
  auto* made = new SoftDomain{};
  made->context = handle();
  made->id = beneath->id;
  made->handle = beneath->id;
  made->parent_of = beneath;
  made->thread_domain = attributes.td;
  ++beneath->users;
  if (attributes.td != nullptr) ++static_cast<SoftThreadDomain*>(attributes.td)->users;
  return made;
}

ibv_mr* SoftContext::reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  constexpr int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING;
  constexpr int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if (length == 0 || (access & ~(known | IBV_ACCESS_OPTIONAL_RANGE)) != 0) return fail<ibv_mr>(EINVAL);
  if ((access & writes) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return fail<ibv_mr>(EINVAL);
  if (!is_mapped(address, length)) return fail<ibv_mr>(EFAULT);
  const EngineVisit visit(lock_);
  if (length > config_.limits.max_pinned_bytes - engine_->regions.pinned_bytes()) return fail<ibv_mr>(ENOMEM);
  auto* domain = static_cast<SoftDomain*>(pd);
  const auto key = engine_->regions.add(domain->id, reinterpret_cast<std::uint64_t>(address), length,
                                        static_cast<std::uint32_t>(access));
  if (!key) return fail<ibv_mr>(ENOMEM);
  wire_->region_registered(*engine_->regions.find(*key));
  ++domain->users;
  auto* region = new SoftRegion{};
  region->context = handle();
  region->pd = pd;
  region->addr = address;
  region->length = length;
  region->handle = *key >> 8;
  region->lkey = region->rkey = *key;
  return region;
}

int SoftContext::dereg_mr(ibv_mr* mr) {
  const EngineVisit visit(lock_);
  engine_->regions.remove(mr->lkey);
  wire_->region_gone(mr->lkey);
  --static_cast<SoftDomain*>(mr->pd)->users;
  delete static_cast<SoftRegion*>(mr);
  return 0;
}

ibv_mw* SoftContext::alloc_mw(ibv_pd*, ibv_mw_type) {
  return fail<ibv_mw>(EOPNOTSUPP);
}
int SoftContext::dealloc_mw(ibv_mw*) {
  return EOPNOTSUPP;
}

device::Memory SoftContext::allocate(std::size_t bytes) {
  const EngineVisit visit(lock_);
  return edge_->allocate(bytes);
}

void SoftContext::release(device::Memory memory) {
  const EngineVisit visit(lock_);
  edge_->release(memory);
}

}  // namespace verbatim::soft
