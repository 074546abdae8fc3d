// How the soft device's objects are laid out: each *is* the verbs object that the application holds, with our part
// behind it.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/async_events.hpp"
#include "device/soft/engine/completion_queue.hpp"
#include "device/soft/engine/queue_pair.hpp"
#include "device/soft/engine/receive_queue.hpp"
#include "device/soft/verbs/engine_lock.hpp"
#include "device/soft/verbs/event_queue.hpp"

namespace verbatim::soft {

class SoftContext;

// Events that an application took and has not acknowledged: destroying an object waits for them (ibv_get_cq_event(3),
// ibv_get_async_event(3)).
class UnacknowledgedEvents {
 public:
  // The mutex of the device's event queues.
  explicit UnacknowledgedEvents(std::mutex& mutex) : mutex_(mutex) {}

  void taken() {
    const std::lock_guard lock(mutex_);
    ++taken_;
  }
  void acknowledged(unsigned int count) {
    const std::lock_guard lock(mutex_);
    acknowledged_ += count;
    all_acknowledged_.notify_all();
  }
  // False if it did not happen within event_acknowledge_limit.
  [[nodiscard]] bool wait();

 private:
  std::mutex& mutex_;
  std::condition_variable all_acknowledged_;
  std::uint64_t taken_ = 0;
  std::uint64_t acknowledged_ = 0;
};

// Picks the async events about one object.
template <typename Object>
[[nodiscard]] auto is_about(Object* object) {
  return [subject = device::EventSubject(object)](const ibv_async_event& event) {
    return device::subject_of(event) == subject;
  };
}

struct SoftDomain : ibv_pd {
  std::uint32_t id = 0;             // of the protection domain; a parent domain has that of the domain it was made from
  ibv_td* thread_domain = nullptr;  // parent domains only
  SoftDomain* parent_of = nullptr;  // parent domains only: the protection domain beneath
  std::uint32_t users = 0;
};

struct SoftThreadDomain : ibv_td {
  std::uint32_t users = 0;
};

struct SoftRegion : ibv_mr {};

struct SoftAddressHandle : ibv_ah {
  AddressVector address;
};

[[nodiscard]] inline const AddressVector& address_of(const ibv_ah& handle) {
  return static_cast<const SoftAddressHandle&>(handle).address;
}

struct SoftQueue;

struct SoftChannel : ibv_comp_channel {
  explicit SoftChannel(std::mutex& events_mutex) : ibv_comp_channel{}, events(events_mutex) {}

  EventQueue<SoftQueue*> events;
};

// A completion queue.
struct SoftQueue : ibv_cq_ex {
  SoftQueue(std::uint32_t capacity, std::mutex& events_mutex)
      : ibv_cq_ex{}, queue(capacity), channel_events(events_mutex), async_events(events_mutex) {
    queue.owner = this;
  }

  SoftContext* owner = nullptr;
  ibv_td* thread_domain = nullptr;
  CompletionQueue queue;
  UnacknowledgedEvents channel_events;
  UnacknowledgedEvents async_events;
  Completion current{};  // what start_poll or next_poll took last

  static SoftQueue& of(ibv_cq* cq) { return *static_cast<SoftQueue*>(reinterpret_cast<ibv_cq_ex*>(cq)); }
  static SoftQueue& of(CompletionQueue& cq) { return *static_cast<SoftQueue*>(cq.owner); }
};

struct SoftSharedReceiveQueue : ibv_srq {
  SoftSharedReceiveQueue(std::uint32_t max_requests, std::uint32_t max_pieces, std::mutex& events_mutex)
      : ibv_srq{}, shared{.queue{max_requests, max_pieces}}, async_events(events_mutex) {
    shared.owner = this;
  }

  SoftContext* owner = nullptr;
  ibv_td* thread_domain = nullptr;
  SharedReceiveQueue shared;
  UnacknowledgedEvents async_events;

  static SoftSharedReceiveQueue& of(SharedReceiveQueue& srq) {
    return *static_cast<SoftSharedReceiveQueue*>(srq.owner);
  }
  static SoftSharedReceiveQueue& of(ibv_srq* srq) { return *static_cast<SoftSharedReceiveQueue*>(srq); }
};

// Work requests between ibv_wr_start() and ibv_wr_complete().
struct StagedRequests {
  explicit StagedRequests(const ibv_qp_cap& cap);

  SpinLock lock;  // held from start to complete or abort: requests of two threads do not mix
  std::vector<ibv_send_wr> requests;
  std::vector<ibv_sge> pieces;
  std::vector<std::byte> inline_data;
  std::uint32_t count = 0;
  std::uint32_t max_pieces;
  std::uint32_t max_inline;
  int problem = 0;
};

// ibv_qp_to_qp_ex() of libibverbs looks for this word behind the ibv_qp_ex.
struct VerbsQueuePair : ibv_qp_ex {
  std::uint32_t private_comp_mask = 0;
  static constexpr std::uint32_t is_extended = 1;
};
static_assert(sizeof(ibv_qp_ex) % alignof(std::uint32_t) == 0);

struct SoftQueuePair : VerbsQueuePair {
  SoftQueuePair(const QueuePair::Settings& settings, std::mutex& events_mutex)
      : VerbsQueuePair{}, engine_part(settings), async_events(events_mutex) {}

  SoftContext* owner = nullptr;
  ibv_td* thread_domain = nullptr;
  ibv_qp_init_attr init{};
  QueuePair engine_part;
  std::unique_ptr<StagedRequests> staged;  // only if made for ibv_wr_*
  UnacknowledgedEvents async_events;

  static SoftQueuePair& of(ibv_qp* qp) { return *static_cast<SoftQueuePair*>(reinterpret_cast<ibv_qp_ex*>(qp)); }
  static SoftQueuePair& of(QueuePair& qp) { return *static_cast<SoftQueuePair*>(qp.settings.owner); }
  static SoftQueuePair& of(ibv_qp_ex* qp) { return *static_cast<SoftQueuePair*>(qp); }
};

}  // namespace verbatim::soft
