// One completion queue for all queue pairs of a worker. It can't overrun: a queue pair is only made when everything
// that it can have outstanding still fits.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "device/context.hpp"
#include "qp/completion.hpp"
#include "qp/protection_domain.hpp"

namespace verbatim::qp {

class CompletionQueue {
 public:
  static constexpr unsigned poll_batch = 16;  // completions taken from the device at a time

  // With room for `initial` entries, or for as many as the device allows; it grows up to `max` as they are reserved.
  // Throws Error(device_failure). Context and domain must outlive it, and it the queue pairs that use it.
  CompletionQueue(device::Context& context, const ProtectionDomain& domain, std::uint32_t initial, std::uint32_t max);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  [[nodiscard]] ibv_cq* handle() const noexcept { return cq_; }

  // -- room ------------------------------------------------------------------------------------------------------
  // Sets entries aside for a queue pair. An error (no_space, with used and limit) means that nothing was set aside.
  [[nodiscard]] std::optional<Error> reserve(std::uint32_t entries);
  // Of a queue pair of which no completion is to come.
  void release(std::uint32_t entries) noexcept { reserved_ -= entries; }
  // Of a queue pair that may have left completions in here: they count until poll() has seen the queue empty.
  void release_when_empty(std::uint32_t entries) noexcept { left_behind_ += entries; }
  [[nodiscard]] std::uint32_t reserved() const noexcept { return reserved_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }

  // -- data path -------------------------------------------------------------------------------------------------
  // Calls on_completion(const WorkCompletion&) for at most `max` completions; how many there were. Fewer than `max`:
  // the queue was empty. Completions of queue pairs that are gone may be among them.
  template <class OnCompletion>
  unsigned poll(OnCompletion&& on_completion, unsigned max = poll_batch);
  // The device can't be polled any more (an overrun, a device that is gone).
  [[nodiscard]] bool broken() const noexcept { return broken_; }

  // -- sleeping --------------------------------------------------------------------------------------------------
  // arm(), then poll() until it is empty, and only then sleep until fd() is readable; then drain_events().
  [[nodiscard]] int fd() const noexcept { return channel_->fd; }
  // 0 or an errno value.
  [[nodiscard]] int arm() noexcept { return ibv_req_notify_cq(cq_, 0); }
  // Takes and acknowledges every event there is, so that fd() is not readable; how many there were. Never blocks.
  unsigned drain_events();

 private:
  void make_channel();
  void make_queue(const ProtectionDomain& domain, std::uint32_t entries);
  void destroy() noexcept;
  [[nodiscard]] bool grow_to(std::uint64_t needed);
  void seen_empty() noexcept;

  device::Context& context_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  std::uint32_t capacity_ = 0;
  std::uint32_t limit_ = 0;  // what capacity_ may grow to
  std::uint32_t reserved_ = 0;
  std::uint32_t left_behind_ = 0;  // of reserved_
  bool broken_ = false;
};

template <class OnCompletion>
unsigned CompletionQueue::poll(OnCompletion&& on_completion, unsigned max) {
  ibv_wc batch[poll_batch];
  unsigned total = 0;
  while (total < max) {
    const unsigned asked = std::min(max - total, poll_batch);
    const int got = ibv_poll_cq(cq_, static_cast<int>(asked), batch);
    if (got < 0) {
      broken_ = true;
      return total;
    }
    for (int i = 0; i < got; ++i) {
      const ibv_wc& wc = batch[i];
      on_completion(WorkCompletion{.id = WorkId::decode(wc.wr_id),
                                   .qpn = {wc.qp_num},
                                   .status = static_cast<CompletionStatus>(wc.status),
                                   .bytes = wc.byte_len});
    }
    total += static_cast<unsigned>(got);
    if (static_cast<unsigned>(got) < asked) {
      if (left_behind_ != 0) [[unlikely]]
        seen_empty();
      break;
    }
  }
  return total;
}

}  // namespace verbatim::qp
