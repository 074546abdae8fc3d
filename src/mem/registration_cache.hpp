// Registration on the fly of users' buffers, kept while their memory stays the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "mem/mapping_watch.hpp"
#include "mem/region.hpp"

namespace verbatim::mem {

// Belongs to one worker's thread. Where it is off, or where it can't be told when a buffer's memory changes (files,
// shared memory, stacks), each lease is a registration of its own that ends with it: slower, and as right.
//
// What always holds: cached ranges don't overlap; they are at most max_bytes and max_entries; what is leased is never
// deregistered.
class RegistrationCache {
  struct Entry;

 public:
  static constexpr std::size_t max_entries = 1024;

  // The right to use a buffer's registration until it goes. Many may share one.
  class Lease {
   public:
    Lease() noexcept = default;
    [[nodiscard]] explicit operator bool() const noexcept { return error_ == 0; }
    [[nodiscard]] int error() const noexcept { return error_; }  // errno of the refused registration, or 0
    [[nodiscard]] LKey lkey() const noexcept { return lkey_; }
    [[nodiscard]] RKey rkey() const noexcept { return rkey_; }

   private:
    friend class RegistrationCache;
    std::shared_ptr<Entry> entry_;  // nothing for the user's own regions and for 0 bytes
    LKey lkey_;
    RKey rkey_;
    int error_ = 0;
  };

  struct Statistics {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t evicted = 0;
    std::uint64_t died = 0;  // their memory was unmapped, moved or discarded
  };

  // `max_bytes`: what may stay registered; 0 switches it off. `registrar` must outlive the cache and its leases.
  RegistrationCache(const Registrar& registrar, std::uint64_t max_bytes);
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  // A registration of at least these bytes with at least this access. A user's own region comes first, then what is
  // cached, then a new one. If the device or the host refuses, idle entries are given up and it is tried again; then
  // the lease is false and says why. The bytes must stay mapped as long as the lease lives. Of 0 bytes: no keys, no
  // error.
  [[nodiscard]] Lease find_or_register(void* address, std::size_t bytes, Access access);

  // A region that its user registered; it must be removed before it goes.
  void add(const RegisteredRegion& region);
  void remove(const RegisteredRegion& region);

  // Deregisters what has died and is not leased; find_or_register() does so too.
  void reap();

  [[nodiscard]] std::uint64_t cached_bytes() const noexcept { return cached_bytes_; }
  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
  // Why nothing is cached, or nullptr.
  [[nodiscard]] const char* why_off() const noexcept { return watch_ ? nullptr : problem_.c_str(); }

 private:
  struct Watched {
    std::shared_ptr<MappingWatch> watch;
    MappingWatch::Index index = 0;
    ~Watched() {
      if (watch) watch->forget(index);
    }
  };
  struct Entry {
    Watched watched;  // outlives the registration: the range is not forgotten before
    RegisteredRegion region;
  };
  using Entries = std::list<std::shared_ptr<Entry>>;  // used last at the front
  struct Extent {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
    Access access = Access::source;
    [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(end - begin); }
    friend bool operator==(const Extent&, const Extent&) = default;
  };

  [[nodiscard]] const RegisteredRegion* find_users(const Extent& wanted) const;
  [[nodiscard]] std::shared_ptr<Entry> find_cached(const Extent& wanted);
  // The wanted one and every cached one that it overlaps, as one.
  [[nodiscard]] Extent merged(const Extent& wanted) const;
  [[nodiscard]] std::shared_ptr<Entry> make_cached(const Extent& extent);
  [[nodiscard]] std::shared_ptr<Entry> make_uncached(const Extent& extent, int& error);
  [[nodiscard]] bool make_room(std::size_t bytes);
  bool evict_one();
  void drop(Entries::iterator entry);
  void drop_overlapping(const Extent& extent);

  Registrar registrar_;
  std::uint64_t max_bytes_;
  std::shared_ptr<MappingWatch> watch_;
  std::string problem_;
  std::multimap<const std::byte*, const RegisteredRegion*> users_;
  std::size_t largest_of_users_ = 0;  // bytes; bounds how far before an address a region that holds it can begin
  Entries entries_;
  std::map<std::byte*, Entries::iterator> by_address_;
  std::uint64_t cached_bytes_ = 0;
  std::uint64_t deaths_seen_ = 0;
  Statistics statistics_;
};

// Why a cache could keep nothing on this host; empty if one could.
[[nodiscard]] std::string registration_cache_problem();

}  // namespace verbatim::mem
