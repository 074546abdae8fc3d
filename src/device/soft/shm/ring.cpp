#include "device/soft/shm/ring.hpp"

namespace verbatim::soft::shm {

bool RingWriter::find_room(std::uint32_t slots) {
  const std::uint64_t head = control_->head.load(std::memory_order_acquire);
  if (head > tail_ || tail_ - head > slots_) {
    broken_ = true;
    return false;
  }
  limit_ = head + slots_;
  return tail_ + slots + clear_ahead <= limit_;
}

void RingReader::tell() {
  told_ = head_;
  control_->head.store(head_, std::memory_order_release);
}

}  // namespace verbatim::soft::shm
