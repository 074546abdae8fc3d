#include "device/soft/shm/segment_views.hpp"

#include "base/error.hpp"
#include "base/log.hpp"

namespace verbatim::soft::shm {

void SegmentViews::map(std::uint32_t index, std::uint32_t serial) {
  View& view = views_[index];
  view.mapping = Mapping();
  view.serial = serial;
  const OpenedFile opened = directory_.open(segment_name(owner_, serial));
  if (opened.bytes == 0) return;
  try {
    view.mapping = Mapping::shared(opened.file, opened.bytes);
  } catch (const Error& error) {
    log().warn("a peer's memory is reached by packets instead of directly: {}", error.what());
  }
}

void SegmentViews::drop_stale(const Instance& owner) {
  for (std::uint32_t index = 0; index < max_segments; ++index) {
    View& view = views_[index];
    if (view.serial != 0 && view.serial != owner.segments[index].serial.load(std::memory_order_acquire)) view = View();
  }
}

}  // namespace verbatim::soft::shm
