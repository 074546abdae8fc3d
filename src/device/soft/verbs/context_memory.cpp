// SoftContext: protection domains, thread domains and memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft {
namespace {

// Kernels before 5.14 don't populate on demand.
bool kernel_populates() {
  static const bool populates = [] {
    alignas(4096) static std::byte page[4096];
    return madvise(page, sizeof(page), MADV_POPULATE_READ) == 0;
  }();
  return populates;
}

// Faults the pages in, as pinning them would: memory that is not there, or may not be read or written as `access` asks,
// is found out now and not on the data path.
bool can_be_pinned(void* address, std::size_t length, int access) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(address) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(address) + length;
  if (end < begin) return false;  // wraps around the address space
  // The least that an old kernel can say: whether anything is mapped there.
  if (!kernel_populates()) return msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) == 0;
  const int advice = (access & IBV_ACCESS_LOCAL_WRITE) != 0 ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  return madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0;
}

// What is wrong with registering that: an errno value, or 0.
int registration_problem(void* address, std::size_t length, int access) {
  constexpr int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING;
  constexpr int not_provided = IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB;
  constexpr int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & not_provided) != 0) return EOPNOTSUPP;
  if (length == 0 || (access & ~(known | IBV_ACCESS_OPTIONAL_RANGE)) != 0) return EINVAL;
  if ((access & writes) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
  return can_be_pinned(address, length, access) ? 0 : EFAULT;
}

}  // namespace

ibv_pd* SoftContext::alloc_pd() {
  if (forked_) return fail<ibv_pd>(EPERM);
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
  if (forked_) return fail<ibv_td>(EPERM);
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
  if (forked_) return fail<ibv_pd>(EPERM);
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
  if (forked_) return fail<ibv_mr>(EPERM);
  if (const int problem = registration_problem(address, length, access)) return fail<ibv_mr>(problem);
  const EngineVisit visit(lock_);
  if (length > config_.limits.max_pinned_bytes - engine_->regions.pinned_bytes()) return fail<ibv_mr>(ENOMEM);
  auto* domain = static_cast<SoftDomain*>(pd);
  const auto key = engine_->regions.add(domain->id, reinterpret_cast<std::uint64_t>(address), length,
                                        static_cast<std::uint32_t>(access));
  if (!key) return fail<ibv_mr>(ENOMEM);
  engine_->wire().region_registered(*engine_->regions.find(*key));
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
  engine_->wire().region_gone(mr->lkey);
  --static_cast<SoftDomain*>(mr->pd)->users;
  delete static_cast<SoftRegion*>(mr);
  return 0;
}

int SoftContext::rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  if (forked_) return EPERM;
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) return EINVAL;
  const bool moves = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  if (moves && (pd == nullptr || pd->context != mr->context)) return EINVAL;
  if (!moves) pd = mr->pd;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) == 0) {
    address = mr->addr;
    length = mr->length;
  }
  RegionTable& regions = engine_->regions;
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) == 0) {
    const EngineVisit visit(lock_);
    access = static_cast<int>(regions.find(mr->lkey)->access);
  }
  // As in reg_mr(), pages are faulted in while the engine goes on.
  if (const int problem = registration_problem(address, length, access)) return problem;
  const EngineVisit visit(lock_);
  if (length > config_.limits.max_pinned_bytes - (regions.pinned_bytes() - mr->length)) return ENOMEM;
  // No peer places by what was granted before once the new grant stands.
  engine_->wire().region_gone(mr->lkey);
  regions.change(mr->lkey, static_cast<SoftDomain*>(pd)->id, reinterpret_cast<std::uint64_t>(address), length,
                 static_cast<std::uint32_t>(access));
  engine_->wire().region_registered(*regions.find(mr->lkey));
  --static_cast<SoftDomain*>(mr->pd)->users;
  ++static_cast<SoftDomain*>(pd)->users;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  return 0;
}

ibv_mw* SoftContext::alloc_mw(ibv_pd*, ibv_mw_type) {
  return fail<ibv_mw>(EOPNOTSUPP);
}
int SoftContext::dealloc_mw(ibv_mw*) {
  return EOPNOTSUPP;
}

device::Memory SoftContext::allocate(std::size_t bytes) {
  if (forked_) {
    errno = EPERM;
    return {};
  }
  const EngineVisit visit(lock_);
  return edge_->allocate(bytes);
}

void SoftContext::release(device::Memory memory) {
  if (forked_) return;  // mapped until the context goes
  const EngineVisit visit(lock_);
  edge_->release(memory);
}

}  // namespace verbatim::soft
