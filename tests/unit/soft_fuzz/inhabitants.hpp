// What lives on the device under fire: regions, queue pairs of every service and state, shared receives, and an
// application that posts, polls, reconnects and keeps books on what it posted.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "device/soft/engine/engine.hpp"
#include "unit/soft_fuzz/arena.hpp"
#include "unit/soft_fuzz/fuzz_wire.hpp"

namespace verbatim::soft::fuzz {

// Keys that packets use: good ones and every kind of bad one.
struct Keys {
  std::uint32_t remote = 0;
  std::uint32_t read_only = 0;
  std::uint32_t foreign = 0;
  std::uint32_t gone = 0;
  std::uint32_t receive = 0;
  std::uint32_t landing = 0;
  std::uint32_t source = 0;
};

class NoEvents final : public EventSink {
 public:
  void completion_event(CompletionQueue&) override {}
  void queue_pair_event(QueuePair&, ibv_event_type) override {}
  void queue_event(CompletionQueue&, ibv_event_type) override {}
  void queue_event(SharedReceiveQueue&, ibv_event_type) override {}
  void port_event(std::uint8_t, ibv_event_type) override {}
};

class Inhabitants {
 public:
  static constexpr std::uint32_t peer_qpn = 0x777;  // whom connected queue pairs believe to talk to
  static constexpr std::uint32_t qkey = 0x1234;
  static constexpr std::uint32_t depth = 16;

  explicit Inhabitants(std::uint64_t seed);
  ~Inhabitants();

  // Something that an application does, chosen at random.
  void act();
  // Takes every completion and checks it against the books.
  void poll();
  // To RTS (or on the way there, sometimes no further), with PSNs drawn anew.
  void connect(QueuePair& queue_pair, std::uint32_t peer, bool all_the_way, Psn receive, Psn send);
  // What no state of the engine may break.
  void check_counts();
  // Everything to ERR: each request that was accepted ends. Then to RESET: every slot is free again.
  void wind_up();
  // After wind_up(): pairs of queue pairs talk to each other, and what is said arrives.
  void converse();

  // What went wrong; empty if nothing.
  [[nodiscard]] std::string complaint() const { return complaint_.empty() ? wire.complaint() : complaint_; }

  Random random;
  Arena arena;
  FuzzWire wire;
  VirtualClock clock;
  NoEvents events;
  Engine engine;
  Keys keys;
  std::vector<std::unique_ptr<QueuePair>> queue_pairs;
  std::map<ibv_wc_opcode, std::uint64_t> succeeded;  // completions of each kind

 private:
  struct Send {
    std::uint64_t id;
    bool signalled;
  };
  // What was posted and has not ended, oldest first.
  struct Books {
    std::deque<Send> sends;
    std::deque<std::uint64_t> receives;  // of its own queue
  };
  void complain(const std::string& about) {
    if (complaint_.empty()) complaint_ = about;
  }
  void grant_all();
  void populate();
  QueuePair& add(ibv_qp_type type, bool shared);
  [[nodiscard]] std::size_t index_of(std::uint32_t qpn) const;
  [[nodiscard]] AddressVector way_to_peer();
  ibv_sge source_piece(std::uint32_t most);
  void post_send(QueuePair& queue_pair);
  void post_receive(QueuePair& queue_pair);
  void post_shared_receive();
  void fill_receive(ibv_recv_wr& wr, std::array<ibv_sge, 2>& pieces);
  void take(const ibv_wc& wc);
  void to_error(QueuePair& queue_pair);
  void to_reset(QueuePair& queue_pair);
  void talk(QueuePair& from, QueuePair& to);
  void exchange(QueuePair& from, QueuePair& to, ibv_wr_opcode opcode, Zone local, std::uint32_t key,
                std::uint32_t bytes, int completions);

  CompletionQueue cq_{1024};
  SharedReceiveQueue srq_{.queue = ReceiveQueue(64, 2), .domain = own_domain};
  std::vector<Books> books_;
  std::set<std::uint64_t> shared_;  // posted to srq_ and not completed; RESET swallows some
  std::uint64_t next_id_ = 1;
  std::string complaint_;
};

}  // namespace verbatim::soft::fuzz
