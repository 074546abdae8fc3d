// What a worker makes on a device, and two queue pairs of two workers connected with each other.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "device/soft/control.hpp"
#include "qp/completion_queue.hpp"
#include "qp/local_port.hpp"
#include "qp/protection_domain.hpp"
#include "qp/rc_pool.hpp"

namespace verbatim::qp::testing {

using namespace std::chrono_literals;

inline device::Selection first_port() {
  device::Selection selection;
  selection.device = "soft0";
  selection.port = PortNumber{1};
  selection.gid.entry.index = 1;
  return selection;
}

inline RcPoolSettings small_pool() {
  return {.initial = 2,
          .max = 64,
          .send_depth = 8,
          .control_slots = 2,
          .receive_slots = 16,
          .signal_interval = 4,
          .inline_bytes = 64,
          .drain_limit = 100ms};
}

class Worker {
 public:
  static constexpr std::size_t memory_bytes = 1 << 16;

  Worker(std::unique_ptr<device::Context> opened, const RcPoolSettings& settings, std::uint32_t initial_entries = 16)
      : context(std::move(opened)),
        domain(*context),
        completion_queue(*context, domain, initial_entries, 1 << 16),
        port(read_local_port(*context, first_port(), 0xffff)),
        pool(*context, domain, completion_queue, port, settings),
        memory(memory_bytes) {
    constexpr int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    region = context->reg_mr(domain.handle(), memory.data(), memory.size(), access);
  }
  ~Worker() { context->dereg_mr(region); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Of a soft device.
  [[nodiscard]] soft::Control& control() { return *soft::control_of(*context); }
  void fault(bool soft::FaultPlan::*which) {
    soft::FaultPlan plan;
    plan.*which = true;
    control().set_faults(plan);
  }
  [[nodiscard]] std::uint64_t counter(std::string_view name) {
    for (const auto& counter : context->counters(1)) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  [[nodiscard]] Segment piece(std::size_t offset, std::uint32_t bytes) const {
    return {&memory.at(offset), bytes, LKey{region->lkey}};
  }
  [[nodiscard]] RemotePlace place(std::size_t offset) const {
    return {reinterpret_cast<std::uintptr_t>(&memory.at(offset)), RKey{region->rkey}};
  }
  // Slot n receives into the memory at n * 64.
  [[nodiscard]] ReceiveSlot slot(std::uint32_t number) {
    return {number, &memory.at(std::size_t{number} * slot_bytes), slot_bytes, LKey{region->lkey}};
  }
  int post_receives(ReliableQueue& queue, std::uint32_t epoch, std::uint32_t first, std::uint32_t count) {
    std::vector<ReceiveSlot> slots;
    for (std::uint32_t i = 0; i < count; ++i) slots.push_back(slot(first + i));
    return queue.post_receives(epoch, slots);
  }

  // Polls until nothing is left; what concerns the pool goes to it, the rest is returned.
  std::vector<WorkCompletion> poll() {
    std::vector<WorkCompletion> polled;
    const auto take = [&](const WorkCompletion& completion) {
      if (!pool.on_completion(completion)) polled.push_back(completion);
    };
    while (completion_queue.poll(take) == CompletionQueue::poll_batch) {
    }
    return polled;
  }

  static constexpr std::uint32_t slot_bytes = 64;

  std::unique_ptr<device::Context> context;
  ProtectionDomain domain;
  CompletionQueue completion_queue;
  LocalPort port;
  RcPool pool;
  std::vector<std::byte> memory;
  ibv_mr* region = nullptr;
};

inline RcConnection connection(const Worker& from, const Worker& to, Qpn number, Psn first_expected, Psn first_sent) {
  return {.peer = {.path = path_to(from.port, to.port.address, {}),
                   .path_mtu = PathMtu::from_bytes(std::min(from.port.active_mtu_bytes, to.port.active_mtu_bytes)),
                   .number = number,
                   .first_expected = first_expected,
                   .first_sent = first_sent},
          .pkey_index = from.port.pkey_index,
          .access = peer_access,
          .initiator_depth = std::min(from.port.initiator_depth, to.port.responder_resources),
          .responder_resources = std::min(from.port.responder_resources, to.port.initiator_depth),
          .rnr_timer = RnrTimer(640us),
          .ack_timeout = AckTimeout(1ms),
          .retries = RetryCount(3),
          .rnr_retries = RnrRetry(3)};
}

// One queue pair of each side, connected to the other.
struct Lane {
  std::unique_ptr<ReliableQueue> a;
  std::unique_ptr<ReliableQueue> b;
};

inline void connect(const Worker& a, const Worker& b, const Lane& lane, std::uint32_t psn) {
  const auto of_a = connection(a, b, lane.b->number(), Psn(psn), Psn(psn + 0x400000));
  const auto of_b = connection(b, a, lane.a->number(), Psn(psn + 0x400000), Psn(psn));
  lane.a->connect_to_rtr(of_a);
  lane.b->connect_to_rtr(of_b);
  lane.a->connect_to_rts(of_a);
  lane.b->connect_to_rts(of_b);
}

}  // namespace verbatim::qp::testing
