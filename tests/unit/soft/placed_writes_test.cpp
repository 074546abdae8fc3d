// A wire that places: plain writes are complete at once, and the target hears of their packet numbers later.
#include <algorithm>
#include <utility>

#include "unit/soft/hub.hpp"
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

class PlacedWrites : public ::testing::Test, protected Pair {
 protected:
  PlacedWrites() {
    open_device = [this](const DeviceConfig& config) { return hub.open(config); };
    hub.places = true;
    config_b.first_qpn = 0x2000;
  }
  ~PlacedWrites() override {
    close(a);
    close(b);
  }
  void SetUp() override {
    open();
    connect();
  }
  // Turns of all devices until nothing more is sent.
  void quiet() {
    for (std::size_t before = hub.sent.size() + 1; before != hub.sent.size();) {
      before = hub.sent.size();
      hub.turn();
    }
  }
  [[nodiscard]] std::size_t sent(PacketKind kind) const {
    return static_cast<std::size_t>(std::count_if(hub.sent.begin(), hub.sent.end(),
                                                  [&](const PacketHeader& header) { return header.kind == kind; }));
  }
  int write(std::uint64_t wr_id, std::size_t offset, std::uint32_t length) {
    return post_rdma(a, wr_id, IBV_WR_RDMA_WRITE, offset, length, b, offset);
  }
  ibv_wc only_completion(Side& side) {
    quiet();
    const auto wcs = polled(side);
    EXPECT_EQ(wcs.size(), 1U);
    return wcs.empty() ? no_completion() : wcs[0];
  }

  Hub hub;
};

TEST_F(PlacedWrites, PlainWriteIsCompleteAtOnceAndNothingTravels) {
  fill(a, 0, 5000, 1);
  ASSERT_EQ(write(1, 0, 5000), 0);
  EXPECT_TRUE(same(a, 0, b, 0, 5000));
  const auto done = polled(a);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].opcode, IBV_WC_RDMA_WRITE);
  EXPECT_TRUE(hub.sent.empty());
  EXPECT_EQ(a.counter("placed_writes"), 1U);
}

TEST_F(PlacedWrites, NextPacketIsPrecededByTheirNumbers) {
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(write(i, 0, 2000), 0);  // two numbers each
  ASSERT_EQ(post_receive(b, 9, 8192, 100), 0);
  ASSERT_EQ(post_send(a, 3, 0, 100), 0);
  ASSERT_EQ(hub.sent.size(), 2U);
  EXPECT_EQ(hub.sent[0].kind, PacketKind::placed_writes);
  EXPECT_EQ(hub.sent[0].packet_count, 6);
  EXPECT_EQ(hub.sent[0].psn(), Psn(settings.psn_a));
  EXPECT_EQ(hub.sent[1].kind, PacketKind::send);
  EXPECT_EQ(hub.sent[1].psn(), Psn(settings.psn_a).plus(6));
  EXPECT_EQ(only_completion(b).wr_id, 9U);
  EXPECT_EQ(polled(a).size(), 4U);
  EXPECT_EQ(a.counter("retransmits"), 0U);
  // Told once.
  ASSERT_EQ(post_receive(b, 10, 8192, 100), 0);
  ASSERT_EQ(post_send(a, 4, 0, 100), 0);
  EXPECT_EQ(only_completion(b).wr_id, 10U);
  EXPECT_EQ(sent(PacketKind::placed_writes), 1U);
}

TEST_F(PlacedWrites, LostNumbersAreToldAgain) {
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(write(i, 0, 2000), 0);
  b.set_word(0, 77);  // the target goes on with the data
  bool lost = false;
  hub.loses = [&](const PacketHeader& header) {
    return header.kind == PacketKind::placed_writes && !std::exchange(lost, true);
  };
  ASSERT_EQ(post_receive(b, 9, 8192, 100), 0);
  ASSERT_EQ(post_send(a, 3, 0, 100), 0);
  EXPECT_EQ(only_completion(b).wr_id, 9U);
  EXPECT_TRUE(lost);
  EXPECT_EQ(b.counter("sequence_nak_sent"), 1U);
  EXPECT_EQ(polled(a).size(), 4U);
  EXPECT_EQ(a.counter("timeouts"), 0U) << "the NAK was enough";
  EXPECT_EQ(b.word(0), 77U) << "written a second time";
}

TEST_F(PlacedWrites, LostNumbersAndTheirPacketAreToldAgainAfterATimeout) {
  ASSERT_EQ(write(1, 0, 2000), 0);
  int losses = 2;
  hub.loses = [&](const PacketHeader&) { return losses-- > 0; };
  ASSERT_EQ(post_receive(b, 9, 8192, 100), 0);
  ASSERT_EQ(post_send(a, 3, 0, 100), 0);
  quiet();
  EXPECT_EQ(polled(a).size(), 1U) << "the write";
  hub.run_timers();
  EXPECT_EQ(only_completion(b).wr_id, 9U);
  EXPECT_EQ(polled(a).size(), 1U);
  EXPECT_EQ(a.counter("timeouts"), 1U);
}

TEST_F(PlacedWrites, WritesBehindSomethingThatTravelsTravelToo) {
  // In order: while the READ is on its way nothing may be placed behind its back.
  fill(b, 0, 100, 3);
  fill(a, 4096, 100, 4);
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_READ, 0, 100, b, 0), 0);
  ASSERT_EQ(post_rdma(a, 2, IBV_WR_RDMA_WRITE, 4096, 100, b, 0), 0);
  EXPECT_EQ(a.counter("placed_writes"), 0U);
  quiet();
  const auto done = polled(a);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].wr_id, 1U);
  EXPECT_TRUE(same(a, 4096, b, 0, 100));
  EXPECT_NE(a.memory[0], a.memory[4096]) << "the READ saw what was there before";
  // Once it is done, writes are placed again.
  ASSERT_EQ(write(3, 0, 100), 0);
  EXPECT_EQ(a.counter("placed_writes"), 1U);
}

TEST_F(PlacedWrites, WriteWithImmediateTravelsWithoutItsPayload) {
  fill(a, 0, 5000, 1);
  ASSERT_EQ(post_receive(b, 9, 0, 0), 0);
  ASSERT_EQ(post(a, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 5000,
                 [&](ibv_send_wr& wr) {
                   wr.imm_data = 0x1234;
                   wr.wr.rdma = {b.address(), b.mr->rkey};
                 }),
            0);
  ASSERT_EQ(hub.sent.size(), 1U);
  EXPECT_TRUE(hub.sent[0].has(packet_flag::placed));
  EXPECT_EQ(hub.sent[0].payload_bytes, 0U);
  EXPECT_TRUE(same(a, 0, b, 0, 5000));
  EXPECT_TRUE(polled(a).empty()) << "complete only when its notice was taken";
  const ibv_wc notice = only_completion(b);
  EXPECT_EQ(notice.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(notice.byte_len, 5000U);
  EXPECT_EQ(notice.imm_data, 0x1234U);
  EXPECT_EQ(polled(a).size(), 1U);
}

TEST_F(PlacedWrites, PlacedWriteWithImmediateIsNotPlacedAgain) {
  fill(a, 0, 5000, 1);
  ASSERT_EQ(post_receive(b, 9, 0, 0), 0);
  bool lost = false;
  hub.loses = [&](const PacketHeader& header) {
    return header.kind == PacketKind::acknowledge && !std::exchange(lost, true);
  };
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 5000, b, 0), 0);
  EXPECT_EQ(only_completion(b).byte_len, 5000U);
  b.set_word(0, 77);
  hub.run_timers();
  quiet();
  EXPECT_EQ(polled(a).size(), 1U);
  EXPECT_TRUE(polled(b).empty()) << "told a second time";
  EXPECT_EQ(b.word(0), 77U) << "written a second time";
}

TEST_F(PlacedWrites, WhatTheTargetDoesNotAllowTravelsAndIsRefused) {
  ASSERT_EQ(post(a, 1, IBV_WR_RDMA_WRITE, 0, 100,
                 [&](ibv_send_wr& wr) {
                   wr.wr.rdma = {b.address(), b.mr->rkey + 1};
                 }),
            0);
  EXPECT_EQ(a.counter("placed_writes"), 0U);
  EXPECT_EQ(only_completion(a).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(b.counter("bad_keys"), 1U);
}

TEST_F(PlacedWrites, NothingIsPlacedThroughAQueuePairThatDoesNotReceive) {
  fill(a, 0, 100, 1);
  ASSERT_EQ(modify_to(b, IBV_QPS_ERR), 0);
  ASSERT_EQ(write(1, 0, 100), 0);
  EXPECT_EQ(a.counter("placed_writes"), 0U);
  EXPECT_FALSE(same(a, 0, b, 0, 100));
}

class PlacedWritesInLongTrains : public PlacedWrites {
 protected:
  PlacedWritesInLongTrains() { hub.train_limit = 1024; }
};

// Their numbers go on over the 24-bit wrap, and beyond what one packet's count can say.
TEST_F(PlacedWritesInLongTrains, ManyAndAcrossTheWrap) {
  constexpr std::uint32_t bytes = 512 * 1024;
  constexpr std::uint64_t writes = 200;  // 102,400 numbers
  fill(a, 0, bytes, 1);
  for (std::uint64_t i = 0; i < writes; ++i) {
    ASSERT_EQ(write(i, 0, bytes), 0);
    ASSERT_EQ(polled(a).size(), 1U);
  }
  EXPECT_TRUE(hub.sent.empty());
  ASSERT_EQ(post_receive(b, 9, 0, 100), 0);
  ASSERT_EQ(post_send(a, 3, 0, 100), 0);
  EXPECT_EQ(sent(PacketKind::placed_writes), 2U);
  EXPECT_EQ(only_completion(b).wr_id, 9U);
  EXPECT_EQ(b.counter("sequence_nak_sent"), 0U);
  EXPECT_EQ(polled(a).size(), 1U);
}

// -- a wire without room ---------------------------------------------------------------------------------------------

TEST_F(PlacedWrites, WhatFoundNoRoomGoesLater) {
  ASSERT_EQ(write(1, 0, 2000), 0);
  hub.full = [](Qpn) { return true; };
  ASSERT_EQ(post_receive(b, 9, 8192, 100), 0);
  ASSERT_EQ(post_send(a, 3, 0, 100), 0);
  ASSERT_EQ(write(4, 0, 100), 0);
  quiet();
  EXPECT_TRUE(hub.sent.empty());
  EXPECT_EQ(polled(a).size(), 1U) << "the first write";
  hub.full = [](Qpn) { return false; };
  EXPECT_EQ(only_completion(b).wr_id, 9U);
  EXPECT_EQ(polled(a).size(), 2U) << "the send and the write behind it";
  EXPECT_EQ(b.counter("sequence_nak_sent"), 0U);
}

// Answers that find no room wait. Requests repeated in the meantime neither pile up nor count as too many.
TEST_F(PlacedWrites, ReadsRepeatedWhileTheirAnswersWaitForRoom) {
  fill(b, 0, 4096, 3);
  const std::uint64_t reads = settings.rd_atomic + 1U;  // the last one waits for its turn
  int room = 0;
  hub.full = [&](Qpn source) { return source.value == b.qp->qp_num && room-- <= 0; };
  for (std::uint64_t i = 0; i < reads; ++i) {
    ASSERT_EQ(post_rdma(a, i, IBV_WR_RDMA_READ, 100 * i, 100, b, 100 * i), 0);
  }
  hub.turn();
  for (int i = 0; i < 4 && a.counter("timeouts") == 0; ++i) {
    hub.clock.advance(std::chrono::microseconds(70));
    hub.turn();
  }
  ASSERT_EQ(a.counter("timeouts"), 1U);
  hub.turn();  // all are asked for again
  for (int turn = 0; turn < 40; ++turn) {
    room = 1;
    hub.turn();
  }
  const auto done = polled(a);
  ASSERT_EQ(done.size(), reads);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
  EXPECT_TRUE(same(a, 0, b, 0, 100 * reads));
}

}  // namespace
}  // namespace verbatim::soft::testing
