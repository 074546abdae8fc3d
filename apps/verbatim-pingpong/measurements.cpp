#include "measurements.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/error.hpp"

namespace verbatim::pingpong {
namespace {

constexpr std::uint32_t message_bytes = 8;
constexpr int round_trips = 19'200;
constexpr int rate_messages = 409'600;
constexpr std::uint32_t rate_receives = queue_depth;
constexpr std::uint32_t send_window = queue_depth / 2;  // well below the receives: nobody is ever told to wait
constexpr std::uint32_t receive_batch = 16;
constexpr std::uint32_t send_batch = 8;     // divides signal_every
constexpr std::uint32_t signal_every = 64;  // divides the counts above
constexpr std::size_t transfer_bytes = 1 << 20;
constexpr int transfers = 200;
constexpr std::uint32_t transfers_outstanding = 4;
// A side that waits longer than this for the other gives up.
constexpr std::chrono::seconds patience{20};

using SteadyClock = std::chrono::steady_clock;

// Looked at once in many empty polls: whether there is still hope.
class Patience {
 public:
  explicit Patience(SharedPage& page) : page_(page) {}
  void spend() {
    if (page_.one_processor) sched_yield();
    if (++polls_ % polls_per_look != 0) return;
    if (page_.failed.load()) throw Error(ErrorCode::device_failure, "the other side failed");
    if (SteadyClock::now() > end_)
      throw Error(ErrorCode::timed_out, fmt::format("nothing came for {} s", patience.count()));
  }

 private:
  static constexpr unsigned polls_per_look = 1U << 16;
  SharedPage& page_;
  unsigned polls_ = 0;
  SteadyClock::time_point end_ = SteadyClock::now() + patience;
};

// `while_waiting` is called over and over.
template <typename WhileWaiting>
void meet_while(Player& player, WhileWaiting while_waiting) {
  Patience patience_left(player.page);
  const auto wait = [&] {
    while_waiting();
    patience_left.spend();
  };
  if (!meet(player.page, wait)) throw Error(ErrorCode::device_failure, "the other side failed");
}

void begin_together(Player& player) {
  meet_while(player, [] {});
}

// The same, while the device is kept going for the other side's sake.
void serve_until_met(Player& player) {
  meet_while(player, [&] {
    ibv_wc completion{};
    (void)ibv_poll_cq(player.endpoint.cq(), 1, &completion);
  });
}

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}
unsigned signal_flag(std::uint32_t number) {
  return number % signal_every == signal_every - 1 ? unsigned{IBV_SEND_SIGNALED} : 0;
}

// Two processes on one processor change places for each message, which takes a scheduler's time: fewer show as much.
int round_trips_of(const Player& player) {
  constexpr int on_one_processor = 768;
  return player.page.one_processor ? on_one_processor : round_trips;
}

double half_round_trip(const Player& player, SteadyClock::time_point start) {
  return seconds_since(start) * 1e9 / (2.0 * round_trips_of(player));
}

void expect(int result, const char* verb) {
  if (result == 0) return;
  throw Error(ErrorCode::device_failure,
              fmt::format("the device refused {}: {} (errno {})", verb, std::strerror(result), result));
}

// Takes up to `most` completions, at least one; how many were receives.
std::uint32_t take_completions(Player& player, int most, Patience& patience_left, std::uint32_t& sends) {
  constexpr int batch = receive_batch;
  ibv_wc completions[batch];
  for (;;) {
    const int taken = ibv_poll_cq(player.endpoint.cq(), std::min(most, batch), completions);
    if (taken < 0) throw Error(ErrorCode::device_failure, "ibv_poll_cq: the completion queue is broken");
    std::uint32_t receives = 0;
    for (int i = 0; i < taken; ++i) {
      if (completions[i].status != IBV_WC_SUCCESS) {
        throw Error(ErrorCode::device_failure, fmt::format("completion: {}", ibv_wc_status_str(completions[i].status)));
      }
      if ((completions[i].opcode & IBV_WC_RECV) == 0) {
        ++sends;
        continue;
      }
      ++receives;
      --(completions[i].qp_num == player.endpoint.ud()->qp_num ? player.ud_receives : player.rc_receives);
    }
    if (taken > 0) return receives;
    patience_left.spend();
  }
}

// Brings the receives of a queue pair up to `count`, a batch a post.
void fill_receives(Player& player, ibv_qp* qp, std::uint32_t count) {
  const bool datagrams = qp == player.endpoint.ud();
  std::uint32_t& posted = datagrams ? player.ud_receives : player.rc_receives;
  const std::uint32_t bytes = message_bytes + (datagrams ? grh_bytes : 0);
  ibv_sge piece{reinterpret_cast<std::uint64_t>(player.endpoint.buffer()), bytes, player.endpoint.lkey()};
  std::array<ibv_recv_wr, receive_batch> batch;
  while (posted < count) {
    const std::uint32_t length = std::min(count - posted, receive_batch);
    for (std::uint32_t i = 0; i < length; ++i) {
      batch[i] = {.wr_id = 0, .next = i + 1 < length ? &batch[i + 1] : nullptr, .sg_list = &piece, .num_sge = 1};
    }
    ibv_recv_wr* bad = nullptr;
    expect(ibv_post_recv(qp, batch.data(), &bad), "ibv_post_recv");
    posted += length;
  }
}

void post_send(Player& player, ibv_qp* qp, unsigned flags) {
  ibv_sge piece{reinterpret_cast<std::uint64_t>(player.endpoint.buffer() + transfer_bytes), message_bytes,
                player.endpoint.lkey()};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.send_flags = flags | IBV_SEND_INLINE;
  if (qp == player.endpoint.ud()) wr.wr.ud = {player.endpoint.peer_handle(), player.peer().ud.qpn, qkey};
  ibv_send_wr* bad = nullptr;
  expect(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

// A batch of sends in one call, the first of them number `first`.
void post_sends(Player& player, ibv_qp* qp, std::uint32_t first) {
  ibv_sge piece{reinterpret_cast<std::uint64_t>(player.endpoint.buffer() + transfer_bytes), message_bytes,
                player.endpoint.lkey()};
  std::array<ibv_send_wr, send_batch> batch{};
  for (std::uint32_t i = 0; i < send_batch; ++i) {
    batch[i].next = i + 1 < send_batch ? &batch[i + 1] : nullptr;
    batch[i].opcode = IBV_WR_SEND;
    batch[i].sg_list = &piece;
    batch[i].num_sge = 1;
    batch[i].send_flags = signal_flag(first + i) | IBV_SEND_INLINE;
  }
  ibv_send_wr* bad = nullptr;
  expect(ibv_post_send(qp, batch.data(), &bad), "ibv_post_send");
}

void post_write(Player& player, std::size_t from, std::size_t to, std::uint32_t bytes, unsigned flags) {
  ibv_sge piece{reinterpret_cast<std::uint64_t>(player.endpoint.buffer() + from), bytes, player.endpoint.lkey()};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.send_flags = flags;
  wr.wr.rdma = {player.peer().buffer + to, player.peer().rkey};
  ibv_send_wr* bad = nullptr;
  expect(ibv_post_send(player.endpoint.rc(), &wr, &bad), "ibv_post_send (write)");
}

// Sends and receives in turn on `qp`; every nth send is signalled, as programs do that care for speed.
double time_sends(Player& player, ibv_qp* qp) {
  constexpr std::uint32_t receives_ahead = 16;
  fill_receives(player, qp, receives_ahead);
  begin_together(player);
  Patience patience_left(player.page);
  std::uint32_t sends = 0;
  std::uint32_t signals_done = 0;
  const auto send = [&] { post_send(player, qp, signal_flag(sends++)); };
  const auto exchange = [&](bool send_first) {
    if (send_first) send();
    while (take_completions(player, 1, patience_left, signals_done) == 0) {
    }
    if (!send_first) send();
    fill_receives(player, qp, receives_ahead);
  };
  const auto start = SteadyClock::now();
  const int rounds = round_trips_of(player);
  for (int i = 0; i < rounds; ++i) exchange(player.serves());
  const double result = half_round_trip(player, start);
  while (signals_done < rounds / signal_every) (void)take_completions(player, 1, patience_left, signals_done);
  serve_until_met(player);
  return result;
}

}  // namespace

void meet_other(Player& player) {
  begin_together(player);
}

double time_cache_line(Player& player) {
  Patience patience_left(player.page);
  begin_together(player);
  const double result =
      apps::time_handover(player.page.lines, player.side, static_cast<std::uint64_t>(round_trips_of(player)),
                          player.page.one_processor ? 1 : apps::handover_looks, [&] { patience_left.spend(); });
  begin_together(player);
  return result;
}

double time_rc_send(Player& player) {
  return time_sends(player, player.endpoint.rc());
}
double time_ud_send(Player& player) {
  return time_sends(player, player.endpoint.ud());
}

double time_rdma_write(Player& player) {
  // The last byte of the slot is the round's number: it is written last, so it says that the rest is there.
  std::byte* outgoing = player.endpoint.buffer() + transfer_bytes;
  volatile std::byte* incoming = player.endpoint.buffer() + message_bytes - 1;
  *incoming = std::byte{0};
  begin_together(player);
  Patience patience_left(player.page);
  std::uint32_t signals_done = 0;
  const auto write = [&](int round) {
    outgoing[message_bytes - 1] = static_cast<std::byte>(round % 255 + 1);
    const unsigned signal = signal_flag(static_cast<std::uint32_t>(round));
    post_write(player, transfer_bytes, 0, message_bytes, IBV_SEND_INLINE | signal);
    // The completion gives the send queue's slots back.
    if (signal != 0) (void)take_completions(player, 1, patience_left, signals_done);
  };
  const auto await = [&](int round) {
    while (*incoming != static_cast<std::byte>(round % 255 + 1)) patience_left.spend();
  };
  const auto start = SteadyClock::now();
  const int rounds = round_trips_of(player);
  for (int round = 0; round < rounds; ++round) {
    if (player.serves()) {
      write(round);
      await(round);
    } else {
      await(round);
      write(round);
    }
  }
  const double result = half_round_trip(player, start);
  serve_until_met(player);
  return result;
}

double rate_rc_send(Player& player) {
  ibv_qp* qp = player.endpoint.rc();
  if (player.serves()) fill_receives(player, qp, rate_receives);
  begin_together(player);
  Patience patience_left(player.page);
  const auto start = SteadyClock::now();
  if (player.serves()) {
    std::uint32_t sends = 0;
    for (std::uint32_t received = 0; received < rate_messages;) {
      received += take_completions(player, 16, patience_left, sends);
      if (rate_receives - player.rc_receives >= receive_batch) fill_receives(player, qp, rate_receives);
    }
  } else {
    std::uint32_t completed = 0;  // in units of signal_every
    for (std::uint32_t sent = 0; sent < rate_messages; sent += send_batch) {
      while (sent - completed * signal_every >= send_window)
        (void)take_completions(player, 4, patience_left, completed);
      post_sends(player, qp, sent);
    }
    while (completed < rate_messages / signal_every) (void)take_completions(player, 4, patience_left, completed);
  }
  const double result = rate_messages / seconds_since(start);
  serve_until_met(player);
  return result;
}

double bandwidth_rdma_write(Player& player) {
  begin_together(player);
  const auto start = SteadyClock::now();
  if (player.serves()) {
    Patience patience_left(player.page);
    std::uint32_t done = 0;
    for (std::uint32_t posted = 0; posted < transfers; ++posted) {
      while (posted - done >= transfers_outstanding) (void)take_completions(player, 4, patience_left, done);
      post_write(player, 0, transfer_bytes, transfer_bytes, IBV_SEND_SIGNALED);
    }
    while (done < transfers) (void)take_completions(player, 4, patience_left, done);
  }
  const double result = transfers * static_cast<double>(transfer_bytes) / seconds_since(start);
  serve_until_met(player);
  return result;
}

double bandwidth_memcpy(Player& player) {
  begin_together(player);
  const auto start = SteadyClock::now();
  if (player.serves()) {
    std::byte* buffer = player.endpoint.buffer();
    for (int i = 0; i < transfers; ++i) {
      std::memcpy(buffer + transfer_bytes, buffer, transfer_bytes);
      // Not one copy of the two hundred may be thought superfluous.
      asm volatile("" ::: "memory");
    }
  }
  const double result = transfers * static_cast<double>(transfer_bytes) / seconds_since(start);
  begin_together(player);
  return result;
}

}  // namespace verbatim::pingpong
