// What is under way: the state behind every Request, from a pool that is bounded and never moves.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/intrusive_list.hpp"
#include "base/turns.hpp"
#include "mem/registration_cache.hpp"
#include "transport/frame.hpp"
#include "verbatim/request.hpp"

namespace verbatim::transport {

// Of what ends at once, with nothing under way.
[[nodiscard]] Request refused(Status status) noexcept;  // not delivered; not Status::ok
[[nodiscard]] Request delivered_at_once() noexcept;
inline constinit detail::RequestRecord accepted_record{Completion{Outcome::accepted, Status::ok, {}, {}, 0}};

class Channel;
class RequestPool;
struct RequestChunk;

enum class RequestKind : std::uint8_t { receive, send, put, get, fetch_add, compare_swap, flush, close };

// Where a request is. Whoever moves it on also moves it from list to list.
enum class RequestStage : std::uint8_t {
  idle,      // in the pool
  posted,    // a receive that waits for a message; in the matcher
  queued,    // waits in its channel for credit, or for the channel to open
  offered,   // a send whose receiver has not granted yet; an atomic without its reply
  granting,  // a receive that has matched an offer, and whose grant has not gone out yet
  moving,    // bytes are being given to the device; of a receive: are coming
  landing,   // all bytes have been given to the device, and not all are done
  waiting,   // a flush or close that waits for the peer to have taken everything
};

struct RequestState : detail::RequestRecord {
  RequestKind kind = RequestKind::receive;
  RequestStage stage = RequestStage::idle;
  bool wants_notice = false;     // a put: an empty message is to follow
  TagMask mask;                  // of a receive
  std::uint32_t index = 0;       // in the pool, for good
  std::uint32_t generation = 0;  // how often it has been given out
  Tag tag;
  std::byte* buffer = nullptr;  // the caller's; of a receive the target, else the source
  std::uint64_t capacity = 0;   // of it, bytes
  std::uint64_t order = 0;      // of a receive: when it was posted; of all others: when the channel issued it
  Channel* channel = nullptr;   // nullptr: a receive from any source
  PeerRequest peer;             // the other half of a rendezvous or atomic
  ListHook<RequestState> hook;  // in whatever list its stage says
  RequestPool* pool = nullptr;  // nullptr: gone, and this one only waits for its Request to let go
  RequestChunk* chunk = nullptr;

  // Rendezvous, put and get: what is being moved.
  std::uint64_t remote_address = 0;
  std::uint64_t moving_bytes = 0;  // in all
  std::uint64_t posted_bytes = 0;  // of them, given to the device
  std::uint64_t moved_bytes = 0;   // of them, done
  std::uint32_t remote_rkey = 0;
  mem::RegistrationCache::Lease lease;  // the caller's buffer, registered while bytes move
  bool leased = false;                  // … which it is now

  // Atomics.
  std::uint64_t operand = 0;
  std::uint64_t swap = 0;
  std::uint64_t* before = nullptr;

  [[nodiscard]] PeerRequest id() const noexcept { return {index, generation}; }
};

using RequestList = IntrusiveList<RequestState, &RequestState::hook>;

struct RequestChunk {
  static constexpr std::uint32_t requests = 256;
  RequestState states[requests];
  std::uint32_t orphans = 0;  // held by a Request when the pool went
};

class RequestPool {
 public:
  RequestPool(std::uint32_t most, Turns& turns) : most_(most), turns_(turns) {}
  RequestPool(const RequestPool&) = delete;
  RequestPool& operator=(const RequestPool&) = delete;
  // Every request has ended. Those that are still held stay where they are until they are let go.
  ~RequestPool();

  // nullptr: `most` are under way. What it gives is pending and held by the caller's Request, and
  // goes back when it has ended and nobody holds it.
  [[nodiscard]] RequestState* take(RequestKind kind) {
    if (free_ == nullptr && !grow()) return nullptr;
    RequestState& request = *std::exchange(free_, free_->hook.next);
    request.hook.next = nullptr;
    ++under_way_;
    ++request.generation;
    request.kind = kind;
    request.completion = Completion{};
    request.held = true;
    return &request;
  }

  // The one and only end of a request.
  void end(RequestState& request, Outcome outcome, Status status) noexcept {
    request.completion.status = status;
    request.stage = RequestStage::idle;
    ++ended_;
    // The last of it, which another thread may look at meanwhile.
    std::atomic_ref(request.completion.outcome).store(outcome, std::memory_order_release);
    if (!request.held) give_back(request);
  }
  void let_go(RequestState& request) noexcept {
    request.held = false;
    if (request.completion.outcome != Outcome::pending) give_back(request);
  }

  [[nodiscard]] Turns& turns() const noexcept { return turns_; }

  // What the peer calls `id`; nullptr if there is no such request any more.
  [[nodiscard]] RequestState* find(PeerRequest id) noexcept;

  [[nodiscard]] std::uint32_t under_way() const noexcept { return under_way_; }
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_; }

 private:
  [[nodiscard]] bool grow();
  void give_back(RequestState& request) noexcept {
    --under_way_;
    request.hook.next = std::exchange(free_, &request);
  }

  std::uint32_t most_;
  Turns& turns_;
  std::uint32_t under_way_ = 0;
  std::uint64_t ended_ = 0;
  RequestState* free_ = nullptr;  // a stack by hook.next: what was used last is still in the cache
  std::vector<std::unique_ptr<RequestChunk>> chunks_;
};

}  // namespace verbatim::transport
