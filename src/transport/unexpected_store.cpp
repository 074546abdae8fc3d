#include "transport/unexpected_store.hpp"

#include <cassert>
#include <new>

namespace verbatim::transport {

UnexpectedStore::~UnexpectedStore() {
  free_idle_blocks();
}

Unexpected* UnexpectedStore::take(std::uint32_t payload_bytes) {
  assert(payload_bytes <= most_eager_bytes_);
  const std::uint32_t block_class = class_of(payload_bytes);
  const std::uint64_t bytes = block_bytes(block_class);
  Unexpected* message = kept_[block_class].pop_front();
  if (message != nullptr) {
    idle_ -= bytes;
  } else {
    if (used_ + idle_ + bytes > budget_) free_idle_blocks();
    message = new (::operator new(bytes)) Unexpected;
  }
  message->block_class = block_class;
  message->payload = block_class == 0 ? nullptr : reinterpret_cast<std::byte*>(message + 1);
  message->offer.reset();
  used_ += bytes;
  peak_ = used_ > peak_ ? used_ : peak_;
  return message;
}

void UnexpectedStore::give_back(Unexpected& message) noexcept {
  const std::uint64_t bytes = block_bytes(message.block_class);
  used_ -= bytes;
  idle_ += bytes;
  kept_[message.block_class].push_back(message);
}

void UnexpectedStore::free_idle_blocks() noexcept {
  for (Blocks& blocks : kept_) {
    while (Unexpected* block = blocks.pop_front()) {
      idle_ -= block_bytes(block->block_class);
      ::operator delete(block);
    }
  }
}

}  // namespace verbatim::transport
