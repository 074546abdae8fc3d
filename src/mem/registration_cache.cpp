#include "mem/registration_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <tuple>

namespace verbatim::mem {
namespace {

constexpr Access united(Access x, Access y) {
  return static_cast<Access>(static_cast<unsigned>(x) | static_cast<unsigned>(y));
}

}  // namespace

RegistrationCache::RegistrationCache(const Registrar& registrar, std::uint64_t max_bytes)
    : registrar_(registrar), max_bytes_(max_bytes) {
  if (max_bytes == 0) {
    problem_ = "memory.registration_cache_bytes is 0";
  } else {
    watch_ = MappingWatch::of_this_process(problem_);
  }
  if (watch_) deaths_seen_ = watch_->deaths();
}

RegistrationCache::Lease RegistrationCache::find_or_register(void* address, std::size_t bytes, Access access) {
  Lease lease;
  if (bytes == 0) return lease;
  auto* const begin = static_cast<std::byte*>(address);
  const Extent wanted{begin, begin + bytes, access};
  const RegisteredRegion* region = find_users(wanted);
  if (region == nullptr) {
    reap();
    lease.entry_ = find_cached(wanted);
    ++(lease.entry_ ? statistics_.hits : statistics_.misses);
    const Extent all = merged(wanted);
    if (!lease.entry_) lease.entry_ = make_cached(all);
    if (!lease.entry_ && all != wanted) lease.entry_ = make_cached(wanted);
    if (!lease.entry_) lease.entry_ = make_uncached(wanted, lease.error_);
    if (!lease.entry_) return lease;
    region = &lease.entry_->region;
  }
  lease.lkey_ = region->lkey();
  lease.rkey_ = region->rkey();
  return lease;
}

void RegistrationCache::add(const RegisteredRegion& region) {
  if (!region) return;
  users_.emplace(region.address(), &region);
  largest_of_users_ = std::max(largest_of_users_, region.bytes());
}

void RegistrationCache::remove(const RegisteredRegion& region) {
  const auto [first, last] = users_.equal_range(region.address());
  const auto found = std::find_if(first, last, [&](const auto& user) { return user.second == &region; });
  if (found != last) users_.erase(found);
}

const RegisteredRegion* RegistrationCache::find_users(const Extent& wanted) const {
  for (auto next = users_.upper_bound(wanted.begin); next != users_.begin();) {
    const auto& [begin, region] = *--next;
    if (static_cast<std::size_t>(wanted.end - begin) > largest_of_users_) return nullptr;
    if (wanted.end <= begin + region->bytes() && covers(region->access(), wanted.access)) return region;
  }
  return nullptr;
}

std::shared_ptr<RegistrationCache::Entry> RegistrationCache::find_cached(const Extent& wanted) {
  const auto next = by_address_.upper_bound(wanted.begin);
  if (next == by_address_.begin()) return nullptr;
  const Entries::iterator found = std::prev(next)->second;
  const std::shared_ptr<Entry>& entry = *found;
  const RegisteredRegion& region = entry->region;
  if (wanted.end > region.address() + region.bytes() || !covers(region.access(), wanted.access)) return nullptr;
  if (!watch_->alive(entry->watched.index)) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entry;
}

RegistrationCache::Extent RegistrationCache::merged(const Extent& wanted) const {
  Extent extent = wanted;
  auto next = by_address_.upper_bound(wanted.begin);
  if (next != by_address_.begin()) --next;
  for (; next != by_address_.end() && next->first < wanted.end; ++next) {
    const RegisteredRegion& region = (*next->second)->region;
    std::byte* const end = region.address() + region.bytes();
    if (end <= wanted.begin || !watch_->alive((*next->second)->watched.index)) continue;
    extent = {std::min(extent.begin, region.address()), std::max(extent.end, end),
              united(extent.access, region.access())};
  }
  return extent;
}

std::shared_ptr<RegistrationCache::Entry> RegistrationCache::make_cached(const Extent& extent) {
  if (!watch_ || extent.bytes() > max_bytes_) return nullptr;
  drop_overlapping(extent);
  if (!make_room(extent.bytes())) return nullptr;
  auto entry = std::make_shared<Entry>();
  const auto index = watch_->watch(extent.begin, extent.bytes());
  if (!index) return nullptr;
  entry->watched.watch = watch_;
  entry->watched.index = *index;
  int error = 0;
  std::tie(entry->region, error) = RegisteredRegion::try_of(registrar_, extent.begin, extent.bytes(), extent.access);
  if (error != 0) return nullptr;
  entries_.push_front(entry);
  by_address_.emplace(extent.begin, entries_.begin());
  cached_bytes_ += extent.bytes();
  return entry;
}

std::shared_ptr<RegistrationCache::Entry> RegistrationCache::make_uncached(const Extent& extent, int& error) {
  auto entry = std::make_shared<Entry>();
  do {
    std::tie(entry->region, error) = RegisteredRegion::try_of(registrar_, extent.begin, extent.bytes(), extent.access);
  } while (error == ENOMEM && evict_one());
  return error == 0 ? entry : nullptr;
}

bool RegistrationCache::make_room(std::size_t bytes) {
  while (cached_bytes_ > max_bytes_ - bytes || entries_.size() >= max_entries) {
    if (!evict_one()) return false;
  }
  return true;
}

bool RegistrationCache::evict_one() {
  const auto idle =
      std::find_if(entries_.rbegin(), entries_.rend(), [](const auto& entry) { return entry.use_count() == 1; });
  if (idle == entries_.rend()) return false;
  ++statistics_.evicted;
  drop(std::prev(idle.base()));
  return true;
}

void RegistrationCache::reap() {
  if (!watch_ || watch_->deaths() == deaths_seen_) return;
  deaths_seen_ = watch_->deaths();
  for (auto next = entries_.begin(); next != entries_.end();) {
    const auto entry = next++;
    if (watch_->alive((*entry)->watched.index)) continue;
    ++statistics_.died;
    drop(entry);
  }
}

// Leases of it keep it registered; nobody finds it any more.
void RegistrationCache::drop(Entries::iterator entry) {
  const RegisteredRegion& region = (*entry)->region;
  cached_bytes_ -= region.bytes();
  by_address_.erase(region.address());
  entries_.erase(entry);
}

void RegistrationCache::drop_overlapping(const Extent& extent) {
  auto next = by_address_.upper_bound(extent.begin);
  if (next != by_address_.begin()) --next;
  while (next != by_address_.end() && next->first < extent.end) {
    const auto entry = (next++)->second;
    const RegisteredRegion& region = (*entry)->region;
    if (region.address() + region.bytes() > extent.begin) drop(entry);
  }
}

std::string registration_cache_problem() {
  std::string problem;
  (void)MappingWatch::of_this_process(problem);
  return problem;
}

}  // namespace verbatim::mem
