// Memory that peers can map: files in the devices' directory, with their space reserved, cut into page-aligned ranges.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>

#include "device/context.hpp"
#include "device/soft/shm/peer.hpp"
#include "device/soft/shm/tables.hpp"

namespace verbatim::soft::shm {

class Arena {
 public:
  explicit Arena(const Self& self) : self_(self) {}
  // Removes the files. What peers have mapped goes when they unmap it.
  ~Arena() = default;

  // Zeroed pages. Empty with errno ENOMEM, and a warning that says what is needed and available, if there is no space.
  [[nodiscard]] device::Memory allocate(std::size_t bytes);
  // What allocate() gave. Anything else is ignored.
  void release(const device::Memory& memory);

  // Where a range of this process's memory lies, if it lies within one segment.
  [[nodiscard]] std::optional<SegmentLocation> locate(std::uint64_t address, std::uint64_t length) const;

  // A stopped peer may still write into this range one day: it is not handed out again.
  void retire(std::uint64_t address);

  // In a forked child: the files are the parent's.
  void forked();

 private:
  struct Range {
    std::size_t bytes = 0;
    bool retired = false;
  };
  struct Segment {
    ~Segment();
    const Directory* directory = nullptr;
    SegmentEntry* entry = nullptr;
    std::string name;
    Mapping mapping;
    std::uint32_t serial = 0;
    bool recycled = false;                    // something was given back: it is not all zeros any more
    std::map<std::size_t, std::size_t> free;  // offset → bytes, none adjacent to another
    std::map<std::size_t, Range> allocated;   // offset → range

    [[nodiscard]] bool holds(std::uint64_t address, std::uint64_t length) const;
    [[nodiscard]] std::byte* take(std::size_t bytes);
    void give_back(std::size_t offset, std::size_t bytes);
  };

  std::unique_ptr<Segment>* grow(std::size_t bytes);
  [[nodiscard]] std::unique_ptr<Segment> make(std::size_t index, std::size_t bytes);
  [[nodiscard]] std::size_t segments_in_use() const;

  const Self& self_;
  std::array<std::unique_ptr<Segment>, max_segments> segments_;
  std::uint32_t last_serial_ = 0;
  std::size_t total_bytes_ = 0;
};

}  // namespace verbatim::soft::shm
