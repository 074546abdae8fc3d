// Two simulated devices with what a worker makes on each, and queue pairs leased from both and connected.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "device/soft/control.hpp"
#include "device/soft/sim/network.hpp"
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

  Worker(soft::SimNetwork& network, const soft::DeviceConfig& config, const RcPoolSettings& settings,
         std::uint32_t initial_entries = 16)
      : context(soft::open_sim(network, config)),
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

class TwoWorkers : public ::testing::Test {
 protected:
  void open(const RcPoolSettings& settings = small_pool(), const soft::DeviceConfig& config_a = {},
            const soft::DeviceConfig& config_b = {}) {
    a.emplace(network, config_a, settings);
    b.emplace(network, config_b, settings);
  }

  void connect(const Lane& lane, std::uint32_t psn = 1) {
    const auto of_a = connection(*a, *b, lane.b->number(), Psn(psn), Psn(psn + 0x400000));
    const auto of_b = connection(*b, *a, lane.a->number(), Psn(psn + 0x400000), Psn(psn));
    lane.a->connect_to_rtr(of_a);
    lane.b->connect_to_rtr(of_b);
    lane.a->connect_to_rts(of_a);
    lane.b->connect_to_rts(of_b);
  }
  Lane connected() {
    Lane lane{a->pool.lease(), b->pool.lease()};
    connect(lane);
    return lane;
  }

  std::vector<WorkCompletion> completions(Worker& worker, std::size_t count) {
    std::vector<WorkCompletion> all;
    const Time patience = network.now() + 1s;
    while (all.size() < count && network.now() < patience) {
      const auto some = worker.poll();
      all.insert(all.end(), some.begin(), some.end());
      if (all.size() < count && !network.step()) break;
    }
    return all;
  }
  // Until the pool has settled what was given back to it.
  std::vector<Retired> retired(Worker& worker) {
    for (int turn = 0; turn < 1000; ++turn) {
      (void)worker.poll();
      auto through = worker.pool.progress(network.now());
      if (!through.empty()) return through;
      network.run_for(1ms);
    }
    ADD_FAILURE() << "nothing came back";
    return {};
  }

  soft::SimNetwork network;
  std::optional<Worker> a;
  std::optional<Worker> b;
};

// The sentence that it throws, if it throws that code.
inline std::string refusal(ErrorCode code, const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace verbatim::qp::testing
