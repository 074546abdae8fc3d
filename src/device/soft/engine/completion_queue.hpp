// A completion queue: a ring of completions, what it is armed for, and nothing that blocks.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

namespace verbatim::soft {

class QueuePair;

struct Completion {
  ibv_wc wc;
  QueuePair* queue_pair;
  // Send side: the send queue position up to which polling this completion gives slots back. Receive side: unused.
  std::uint32_t send_position;
  bool is_receive;
};

enum class Arming : std::uint8_t { none, solicited_only, any };

class CompletionQueue {
 public:
  explicit CompletionQueue(std::uint32_t capacity) : entries_(capacity) {}

  [[nodiscard]] std::uint32_t capacity() const { return static_cast<std::uint32_t>(entries_.size()); }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool overrun() const { return overrun_; }

  // False when full: the queue is broken from then on (specification, volume 1, 11.6.3.1) and takes nothing more.
  [[nodiscard]] bool push(const Completion& completion) {
    if (size_ == entries_.size() || overrun_) {
      overrun_ = true;
      return false;
    }
    std::uint32_t at = head_ + size_;
    if (at >= entries_.size()) at -= capacity();
    entries_[at] = completion;
    ++size_;
    return true;
  }
  // Only when size() > 0.
  [[nodiscard]] const Completion& front() const { return entries_[head_]; }
  void pop() {
    if (++head_ == entries_.size()) head_ = 0;
    --size_;
  }

  // Takes out what belongs to a queue pair that is reset or destroyed; `removed` sees each.
  template <typename Removed>
  void discard(const QueuePair* queue_pair, Removed removed) {
    rebuild(capacity(), [&](const Completion& completion) {
      if (completion.queue_pair != queue_pair) return true;
      removed(completion);
      return false;
    });
  }
  // capacity >= size().
  void resize(std::uint32_t capacity) {
    rebuild(capacity, [](const Completion&) { return true; });
  }

  Arming armed = Arming::none;
  std::uint32_t users = 0;  // queue pairs made with it
  void* owner = nullptr;    // whoever made it, for events

 private:
  template <typename Keep>
  void rebuild(std::uint32_t capacity, Keep keep) {
    std::vector<Completion> kept(capacity);
    std::uint32_t count = 0;
    for (; size_ > 0; pop()) {
      if (keep(front())) kept[count++] = front();
    }
    entries_ = std::move(kept);
    head_ = 0;
    size_ = count;
  }

  std::vector<Completion> entries_;
  std::uint32_t head_ = 0;
  std::uint32_t size_ = 0;
  bool overrun_ = false;
};

}  // namespace verbatim::soft
