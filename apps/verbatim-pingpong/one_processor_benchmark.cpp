// What verbs on the soft device cost one processor: two contexts in one thread, so that no cache line travels and every
// instruction counts. `valgrind --tool=callgrind` on it gives repeatable counts.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>

#include "device/system.hpp"
#include "endpoint.hpp"

namespace verbatim::pingpong {
namespace {

constexpr std::uint32_t message_bytes = 8;
constexpr std::uint32_t signal_every = 64;

struct Pair {
  Pair() {
    device::System system = device::System::of_this_host();
    const auto selection = device::select(system.list(), device::parse_selection_rule("soft0"));
    for (auto& side : sides) side = std::make_unique<Endpoint>(system.open(selection), selection);
    addresses = {sides[0]->address(), sides[1]->address()};
    sides[0]->connect(addresses[1], addresses[0]);
    sides[1]->connect(addresses[0], addresses[1]);
  }

  void post_receive(std::size_t side) {
    ibv_sge piece{reinterpret_cast<std::uint64_t>(sides[side]->buffer()), message_bytes, sides[side]->lkey()};
    ibv_recv_wr wr{.wr_id = 0, .next = nullptr, .sg_list = &piece, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_recv(sides[side]->rc(), &wr, &bad) != 0) std::abort();
  }
  void post(std::size_t side, ibv_wr_opcode opcode) {
    ibv_sge piece{reinterpret_cast<std::uint64_t>(sides[side]->buffer()), message_bytes, sides[side]->lkey()};
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_INLINE | (++posted[side] % signal_every == 0 ? unsigned{IBV_SEND_SIGNALED} : 0U);
    wr.wr.rdma = {addresses[1 - side].buffer, addresses[1 - side].rkey};
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(sides[side]->rc(), &wr, &bad) != 0) std::abort();
  }
  // Polls until a receive is there.
  void await_receive(std::size_t side) {
    ibv_wc completion{};
    do {
      while (ibv_poll_cq(sides[side]->cq(), 1, &completion) == 0) {
      }
      if (completion.status != IBV_WC_SUCCESS) std::abort();
    } while (completion.opcode != IBV_WC_RECV);
  }

  std::array<std::unique_ptr<Endpoint>, 2> sides;
  std::array<SideAddress, 2> addresses{};
  std::array<std::uint32_t, 2> posted{};
};

// A send and its receive, and the same back.
void rc_send_round_trip(benchmark::State& state) {
  Pair pair;
  for (int i = 0; i < 16; ++i) pair.post_receive(0), pair.post_receive(1);
  for (auto _ : state) {
    for (const std::size_t from : {0U, 1U}) {
      pair.post(from, IBV_WR_SEND);
      pair.await_receive(1 - from);
      pair.post_receive(1 - from);
    }
  }
}
BENCHMARK(rc_send_round_trip);

// A write into memory that the requester can reach.
void rdma_write(benchmark::State& state) {
  Pair pair;
  ibv_wc completion{};
  for (auto _ : state) {
    pair.post(0, IBV_WR_RDMA_WRITE);
    if (pair.posted[0] % signal_every == 0) {
      while (ibv_poll_cq(pair.sides[0]->cq(), 1, &completion) == 0) {
      }
    }
  }
}
BENCHMARK(rdma_write);

// A look at a completion queue to which nothing comes.
void empty_poll(benchmark::State& state) {
  Pair pair;
  ibv_wc completion{};
  for (auto _ : state) benchmark::DoNotOptimize(ibv_poll_cq(pair.sides[0]->cq(), 1, &completion));
}
BENCHMARK(empty_poll);

}  // namespace
}  // namespace verbatim::pingpong

BENCHMARK_MAIN();
