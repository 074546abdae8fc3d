#include "device/soft/shm/arena.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"

namespace verbatim::soft::shm {
namespace {

// A new segment is as large as all there are, within these, so that their number grows slowly.
constexpr std::size_t smallest_growth = std::size_t{1} << 20;
constexpr std::size_t largest_growth = std::size_t{64} << 20;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

Arena::Segment::~Segment() {
  if (entry == nullptr) return;
  entry->serial.store(0, std::memory_order_release);
  directory->remove(name);
}

bool Arena::Segment::holds(std::uint64_t address, std::uint64_t length) const {
  const auto start = reinterpret_cast<std::uintptr_t>(mapping.data());
  return address >= start && length <= mapping.bytes() && address - start <= mapping.bytes() - length;
}

std::byte* Arena::Segment::take(std::size_t bytes) {
  const auto found = std::find_if(free.begin(), free.end(), [&](const auto& range) { return range.second >= bytes; });
  if (found == free.end()) return nullptr;
  const auto [offset, available] = *found;
  free.erase(found);
  if (available > bytes) free.emplace(offset + bytes, available - bytes);
  allocated.emplace(offset, Range{.bytes = bytes});
  std::byte* address = mapping.data() + offset;
  if (recycled) std::memset(address, 0, bytes);
  return address;
}

void Arena::Segment::give_back(std::size_t offset, std::size_t bytes) {
  recycled = true;
  auto next = free.lower_bound(offset);
  if (next != free.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = free.erase(next);
  }
  if (next != free.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  free.emplace(offset, bytes);
}

device::Memory Arena::allocate(std::size_t bytes) {
  if (bytes == 0 || bytes > SIZE_MAX - page_bytes) {
    errno = EINVAL;
    return {};
  }
  bytes = whole_pages(bytes);
  for (const auto& segment : segments_) {
    std::byte* address = segment ? segment->take(bytes) : nullptr;
    if (address != nullptr) return {address, bytes};
  }
  std::unique_ptr<Segment>* segment = grow(bytes);
  if (segment == nullptr) {
    errno = ENOMEM;
    return {};
  }
  return {(*segment)->take(bytes), bytes};
}

std::unique_ptr<Arena::Segment>* Arena::grow(std::size_t bytes) {
  const auto slot = std::find(segments_.begin(), segments_.end(), nullptr);
  if (slot == segments_.end()) {
    log().warn("{} of {} segments of mappable memory are used; allocate fewer, larger pieces", max_segments,
               max_segments);
    return nullptr;
  }
  const auto index = static_cast<std::size_t>(slot - segments_.begin());
  const std::size_t growth = std::max(bytes, std::clamp(total_bytes_, smallest_growth, largest_growth));
  for (const std::size_t size : {growth, bytes}) {
    try {
      *slot = make(index, size);
      total_bytes_ += size;
      return &*slot;
    } catch (const Error& error) {
      if (size != bytes) continue;
      log().warn("{}", error.what());
      return nullptr;
    }
  }
  return nullptr;
}

std::unique_ptr<Arena::Segment> Arena::make(std::size_t index, std::size_t bytes) {
  auto segment = std::make_unique<Segment>();
  segment->serial = ++last_serial_;
  segment->name = segment_name(self_.id, segment->serial);
  segment->directory = &self_.registry->directory();
  const FileDescriptor file = segment->directory->create(segment->name, bytes);
  segment->entry = &self_.instance->segments[index];
  segment->mapping = Mapping::shared(file, bytes);
  segment->free.emplace(0, bytes);
  segment->entry->bytes.store(bytes, std::memory_order_relaxed);
  segment->entry->serial.store(segment->serial, std::memory_order_release);
  return segment;
}

std::size_t Arena::segments_in_use() const {
  return static_cast<std::size_t>(
      std::count_if(segments_.begin(), segments_.end(), [](const auto& segment) { return segment != nullptr; }));
}

void Arena::release(const device::Memory& memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.address);
  for (auto& segment : segments_) {
    if (!segment || !segment->holds(address, 0)) continue;
    const auto found = segment->allocated.find(
        static_cast<std::size_t>(static_cast<std::byte*>(memory.address) - segment->mapping.data()));
    if (found == segment->allocated.end() || found->second.retired) return;
    segment->give_back(found->first, found->second.bytes);
    segment->allocated.erase(found);
    // The last one stays, so that a program that allocates and releases does not make a file each time.
    if (segment->allocated.empty() && segments_in_use() > 1) {
      total_bytes_ -= segment->mapping.bytes();
      segment.reset();
    }
    return;
  }
}

std::optional<SegmentLocation> Arena::locate(std::uint64_t address, std::uint64_t length) const {
  for (std::size_t index = 0; index < segments_.size(); ++index) {
    const auto& segment = segments_[index];
    if (!segment || !segment->holds(address, length)) continue;
    return SegmentLocation{.segment = static_cast<std::uint32_t>(index + 1),
                           .serial = segment->serial,
                           .offset = address - reinterpret_cast<std::uintptr_t>(segment->mapping.data())};
  }
  return std::nullopt;
}

void Arena::retire(std::uint64_t address) {
  for (const auto& segment : segments_) {
    if (!segment || !segment->holds(address, 0)) continue;
    const std::uint64_t offset = address - reinterpret_cast<std::uintptr_t>(segment->mapping.data());
    auto next = segment->allocated.upper_bound(offset);
    if (next != segment->allocated.begin()) std::prev(next)->second.retired = true;
  }
}

void Arena::forked() {
  for (auto& segment : segments_) {
    if (segment) segment->entry = nullptr;
  }
}

}  // namespace verbatim::soft::shm
