// One queue pair: what it was made with, what it was connected with, its queues, and the state of its two halves.
// The halves' behaviour is in requester.cpp, responder.cpp and datagram.cpp; the state rules are in
// queue_pair_states.cpp.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "device/soft/engine/completion_queue.hpp"
#include "device/soft/engine/receive_queue.hpp"
#include "device/soft/engine/send_queue.hpp"

namespace verbatim::soft {

// The half that sends requests and takes responses.
struct Requester {
  Psn next_psn;                         // of the next request sent for the first time
  std::uint32_t cursor_packet = 0;      // packets of the request at the send queue's cursor that were sent already
  std::uint32_t first_unsent = 0;       // position: requests at or behind it never had a PSN
  std::uint32_t reads_outstanding = 0;  // READs and atomics between head and cursor
  std::uint32_t unplaced = 0;           // requests that were sent, are not completed, and whose data was not placed
  Psn highest;                          // packets before it were sent at least once, or placed
  std::uint32_t placed_packets = 0;     // right before next_psn or the oldest outstanding request: complete, and the
                                        // target has not heard of their PSNs
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
  bool moved = false;              // something was sent or acknowledged since the ack timer was set
  bool waits_for_rnr = false;      // nothing is sent until the timer fires
  bool gap_seen = false;           // sent again for a lost response: not once more until there is progress or a timeout
  std::uint64_t packets_sent = 0;  // for FaultPlan::kill_after_packets
};

// A READ or atomic that is owed its answer. Answers leave in the order of their requests.
struct Response {
  bool is_atomic = false;
  bool is_repeated = false;  // answered once before
  Psn psn;
  std::uint32_t packets = 0;  // READ: still to be sent
  std::uint32_t sent = 0;     // READ: packets sent already
  std::uint64_t address = 0;
  std::uint32_t remaining = 0;  // bytes
  RKey rkey{};
  std::uint64_t original = 0;  // atomic
};

struct SavedAtomic {
  Psn psn;
  std::uint64_t original = 0;
  bool valid = false;
};

enum class Assembly : std::uint8_t { none, send, write };

// The half that executes requests and answers.
struct Responder {
  Psn expected;
  Assembly assembly = Assembly::none;
  bool gap_told = false;          // one NAK a gap: until the missing packet comes nothing more is said
  bool receive_taken = false;     // `receive` is in use and not yet completed
  bool acknowledge_owed = false;  // everything before `expected`
  std::uint8_t nak_owed = 0;      // a syndrome; 0: none
  Psn nak_psn;
  ReceiveRequest receive;
  std::uint64_t write_address = 0;  // of the next packet of a write
  std::uint32_t write_rkey = 0;
  std::uint32_t write_remaining = 0;
  std::uint32_t offset = 0;         // bytes taken of the message being assembled
  std::vector<Response> responses;  // a ring: [first_response, first_response + response_count)
  std::uint32_t first_response = 0;
  std::uint32_t response_count = 0;
  std::vector<SavedAtomic> saved_atomics;  // a ring; what a repeated atomic is answered from
  std::uint32_t next_saved = 0;
};

class QueuePair {
 public:
  struct Settings {
    ibv_qp_type type = IBV_QPT_RC;
    std::uint32_t domain = 0;
    CompletionQueue* send_cq = nullptr;
    CompletionQueue* receive_cq = nullptr;
    SharedReceiveQueue* srq = nullptr;
    ibv_qp_cap cap{};
    bool signal_all = false;
    void* owner = nullptr;  // the ibv_qp, for events
  };

  explicit QueuePair(const Settings& given)
      : settings(given),
        sends(given.cap.max_send_wr, given.cap.max_send_sge, given.cap.max_inline_data, given.type == IBV_QPT_UD),
        receives(given.srq != nullptr ? 0 : given.cap.max_recv_wr, given.cap.max_recv_sge) {}
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  [[nodiscard]] ReceiveQueue& receive_queue() { return settings.srq != nullptr ? settings.srq->queue : receives; }
  [[nodiscard]] bool reliable() const { return settings.type == IBV_QPT_RC; }
  [[nodiscard]] bool sends_requests() const { return state == IBV_QPS_RTS || state == IBV_QPS_SQD; }
  [[nodiscard]] bool executes_requests() const {
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
  }
  [[nodiscard]] Service service() const {
    return settings.type == IBV_QPT_RC ? Service::rc : settings.type == IBV_QPT_UC ? Service::uc : Service::ud;
  }

  // PSNs that a message takes.
  [[nodiscard]] std::uint32_t packets_for(std::uint32_t bytes) const {
    return bytes <= mtu_bytes ? 1 : (bytes - 1) / mtu_bytes + 1;
  }

  const Settings settings;
  Qpn qpn{};
  ibv_qp_state state = IBV_QPS_RESET;
  ibv_qp_attr attributes{};  // as modify set them
  std::uint32_t mtu_bytes = 0;
  std::optional<Duration> ack_timeout;  // nothing: infinite
  std::uint16_t pkey = 0;               // by value, looked up when it was set
  AddressVector address;                // connected services
  std::uint32_t generation = 1;         // grows when requests are withdrawn; see QueuePairView
  bool established_told = false;        // IBV_EVENT_COMM_EST
  bool drain_told = false;              // IBV_EVENT_SQ_DRAINED
  bool owes_work = false;               // is in the engine's list of queue pairs that owe a transmission

  SendQueue sends;
  ReceiveQueue receives;
  Requester requester;
  Responder responder;

  Time deadline = never;       // of the ack or RNR timer; never: not running
  Time heap_deadline = never;  // the earliest entry of this queue pair in the engine's timer queue
};

// PacketHeader::source of what it sends.
[[nodiscard]] inline std::uint32_t source_of(const QueuePair& queue_pair) {
  return static_cast<std::uint32_t>(queue_pair.service()) << 24 | queue_pair.qpn.value;
}

}  // namespace verbatim::soft
