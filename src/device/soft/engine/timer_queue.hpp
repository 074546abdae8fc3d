// Deadlines of queue pairs: a heap that is lazy, so that moving a deadline back (each ACK does) costs nothing.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "device/soft/engine/queue_pair.hpp"

namespace verbatim::soft {

class TimerQueue {
 public:
  // A queue pair has few entries at a time: one, or one more for each deadline nearer than those before it.
  void reserve(std::size_t queue_pairs) { heap_.reserve(4 * queue_pairs); }

  void start(QueuePair& queue_pair, Time deadline) {
    queue_pair.deadline = deadline;
    if (deadline < queue_pair.heap_deadline) {
      queue_pair.heap_deadline = deadline;
      push(deadline, &queue_pair);
    }
  }
  static void stop(QueuePair& queue_pair) { queue_pair.deadline = never; }

  // Never later than the first deadline that is due.
  [[nodiscard]] Time next() const { return heap_.empty() ? never : heap_.front().deadline; }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  // Whether next() has become earlier since this was last asked.
  [[nodiscard]] bool brought_forward() { return std::exchange(brought_forward_, false); }

  // A queue pair whose deadline has passed, its timer stopped; nullptr if there is none.
  [[nodiscard]] QueuePair* take_due(Time now) {
    while (!heap_.empty() && heap_.front().deadline <= now) {
      const Entry entry = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
      QueuePair& queue_pair = *entry.queue_pair;
      if (entry.deadline != queue_pair.heap_deadline) continue;  // overtaken by a nearer entry that has fired since
      queue_pair.heap_deadline = never;
      if (queue_pair.deadline == never) continue;
      if (queue_pair.deadline > now) {
        start(queue_pair, queue_pair.deadline);
        continue;
      }
      stop(queue_pair);
      return &queue_pair;
    }
    return nullptr;
  }

  void forget(const QueuePair& queue_pair) {
    std::erase_if(heap_, [&](const Entry& entry) { return entry.queue_pair == &queue_pair; });
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

 private:
  struct Entry {
    Time deadline;
    QueuePair* queue_pair;
  };
  static bool later(const Entry& a, const Entry& b) { return a.deadline > b.deadline; }

  void push(Time deadline, QueuePair* queue_pair) {
    brought_forward_ |= deadline < next();
    heap_.push_back({deadline, queue_pair});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  std::vector<Entry> heap_;
  bool brought_forward_ = false;
};

}  // namespace verbatim::soft
