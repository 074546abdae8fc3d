// Single packets lost, repeated, late or damaged: what is sent again, what is not done twice, and what it costs.
#include <string>

#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint32_t bytes = 3500;  // four packets
constexpr std::uint32_t packets = 4;
constexpr std::size_t source = 0;
constexpr std::size_t target = 8192;

class Retransmission : public RcPair {
 protected:
  void post_receives(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(post_receive(b, 100 + i, target, 8192), 0);
  }
  // One operation of `opcode` from a, its data somewhere that no other test byte is, judged to the end.
  void one_operation(ibv_wr_opcode opcode) {
    SCOPED_TRACE("opcode " + std::to_string(opcode));
    const bool receives = opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (receives) post_receives(1);
    fill(a, source, bytes, 1);
    fill(b, target, bytes, 2);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      b.set_word(target, 40);
      ASSERT_EQ(post_fetch_add(a, 1, source, b, target, 2), 0);
    } else {
      ASSERT_EQ(post_rdma(a, 1, opcode, source, bytes, b, target), 0);
    }
    const ibv_wc done = completion(a);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_EQ(done.wr_id, 1U);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      EXPECT_EQ(a.word(source), 40U);
      EXPECT_EQ(b.word(target), 42U) << "executed once";
    } else {
      EXPECT_TRUE(same(a, source, b, target, bytes));
    }
    settle();
    EXPECT_TRUE(polled(a).empty());
    const auto received = polled(b);
    ASSERT_EQ(received.size(), receives ? 1U : 0U);
    if (receives) {
      EXPECT_EQ(received[0].byte_len, bytes);
    }
  }
  [[nodiscard]] static std::uint32_t requests_of(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 1 : packets;
  }
  static constexpr ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                              IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
};

// -- one packet lost -------------------------------------------------------------------------------------------------

TEST_F(Retransmission, LostRequestIsSentAgain) {
  for (const ibv_wr_opcode opcode : opcodes) {
    for (std::uint32_t nth = 1; nth <= requests_of(opcode); ++nth) {
      const std::uint64_t before = a.counter("retransmits");
      a.fault({.fault = PacketFault::drop, .packets = PacketClass::request, .nth = nth});
      one_operation(opcode);
      EXPECT_GT(a.counter("retransmits"), before) << "packet " << nth;
    }
  }
}

TEST_F(Retransmission, LostAcknowledgementIsGivenAgain) {
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    const std::uint64_t duplicates = b.counter("duplicates");
    const std::uint64_t timeouts = a.counter("timeouts");
    b.fault({.fault = PacketFault::drop, .packets = PacketClass::acknowledge, .nth = 1});
    one_operation(opcode);
    EXPECT_EQ(a.counter("timeouts"), timeouts + 1);
    EXPECT_EQ(b.counter("duplicates"), duplicates + packets);
  }
}

TEST_F(Retransmission, LostReadResponseIsAskedForAgain) {
  for (std::uint32_t nth = 1; nth <= packets; ++nth) {
    const std::uint64_t sent = b.counter("packets_sent");
    b.fault({.fault = PacketFault::drop, .packets = PacketClass::response, .nth = nth});
    one_operation(IBV_WR_RDMA_READ);
    // What came before the gap is not asked for again.
    EXPECT_EQ(b.counter("packets_sent") - sent, packets + packets - nth + 1) << "response " << nth;
  }
}

TEST_F(Retransmission, LostAtomicResponseIsGivenAgain) {
  b.fault({.fault = PacketFault::drop, .packets = PacketClass::response, .nth = 1});
  one_operation(IBV_WR_ATOMIC_FETCH_AND_ADD);
  EXPECT_EQ(b.counter("duplicates"), 1U);
}

// The answer behind the lost one shows the gap: nobody has to wait for the timer.
TEST_F(Retransmission, NextAnswerShowsThatOneWasLost) {
  ConnectionSettings patient = settings;
  patient.timeout = 0;
  reconnect(patient);
  fill(b, target, 4096, 3);
  b.fault({.fault = PacketFault::drop, .packets = PacketClass::response, .nth = 1});
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(post_rdma(a, i, IBV_WR_RDMA_READ, source + i * 1000, 1000, b, target + i * 1000), 0);
  }
  auto done = completions(a, 3);
  ASSERT_EQ(done.size(), 3U) << "READs";
  EXPECT_TRUE(same(a, source, b, target, 3000));

  b.set_word(target, 5);
  b.fault({.fault = PacketFault::drop, .packets = PacketClass::response, .nth = 1});
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(post_fetch_add(a, i, source + 8 * i, b, target, 1), 0);
  done = completions(a, 3);
  ASSERT_EQ(done.size(), 3U) << "atomics";
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(done[i].wr_id, i);
    EXPECT_EQ(a.word(source + 8 * i), 5 + i);
  }
  EXPECT_EQ(b.word(target), 8U);
}

// An ACK of what was posted behind a READ says that the READ's answer was lost.
TEST_F(Retransmission, AcknowledgementBehindAReadShowsThatItsAnswerWasLost) {
  ConnectionSettings patient = settings;
  patient.timeout = 0;
  reconnect(patient);
  fill(a, 4096, 100, 1);
  fill(b, target, 100, 2);
  b.fault({.fault = PacketFault::drop, .packets = PacketClass::response, .nth = 1});
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_READ, source, 100, b, target), 0);
  ASSERT_EQ(post_rdma(a, 2, IBV_WR_RDMA_WRITE, 4096, 100, b, target + 4096), 0);
  const auto done = completions(a, 2);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].wr_id, 1U) << "in order";
  EXPECT_TRUE(same(a, source, b, target, 100));
}

TEST_F(Retransmission, OneSequenceNakForOneGap) {
  post_receives(10);
  a.fault({.fault = PacketFault::drop, .packets = PacketClass::request, .nth = 3});
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(post_send(a, i, source, 100), 0);
  EXPECT_EQ(completions(a, 10).size(), 10U);
  EXPECT_EQ(b.counter("sequence_nak_sent"), 1U) << "seven packets arrived behind the gap";
  EXPECT_EQ(a.counter("retransmits"), 8U) << "the third to the tenth";
  EXPECT_EQ(a.counter("timeouts"), 0U);
}

TEST_F(Retransmission, PacketNumbersWrapWhileOneIsLost) {
  for (std::uint32_t nth = 1; nth <= 8; ++nth) {
    ConnectionSettings close_to_wrap = settings;
    close_to_wrap.psn_a = 0xfffffd;
    close_to_wrap.psn_b = 0xfffffe;
    reconnect(close_to_wrap);
    for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(post_receive(b, i, target + 4096 * i, 4096), 0);
    fill(a, source, 8000, nth);
    a.fault({.fault = PacketFault::drop, .packets = PacketClass::request, .nth = nth});
    for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(post_send(a, i, source + 2000 * i, 2000), 0);
    const auto received = completions(b, 4);
    ASSERT_EQ(received.size(), 4U);
    for (std::uint64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(received[i].wr_id, i);
      EXPECT_TRUE(same(a, source + 2000 * i, b, target + 4096 * i, 2000));
    }
    EXPECT_EQ(completions(a, 4).size(), 4U);
    // And READs, whose answers' numbers wrap.
    ASSERT_EQ(post_rdma(a, 9, IBV_WR_RDMA_READ, 65536, 7000, b, target), 0);
    EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
    EXPECT_TRUE(same(a, 65536, b, target, 7000));
  }
}

// -- one packet repeated, late or damaged ----------------------------------------------------------------------------

TEST_F(Retransmission, RepeatedLateAndDamagedPacketsDoNoHarm) {
  for (const PacketFault fault :
       {PacketFault::duplicate, PacketFault::reorder, PacketFault::delay, PacketFault::corrupt}) {
    for (Side* side : {&a, &b}) {
      for (const ibv_wr_opcode opcode : opcodes) {
        for (std::uint32_t nth = 1; nth <= packets; ++nth) {
          SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + (side == &a ? " of a" : " of b") +
                       ", packet " + std::to_string(nth));
          side->fault({.fault = fault, .nth = nth, .delay = microseconds(7)});
          one_operation(opcode);
          side->heal();
        }
      }
    }
  }
}

TEST_F(Retransmission, DamagedPacketsAreCounted) {
  std::uint64_t damaged = 0;
  for (const ibv_wr_opcode opcode : opcodes) {
    a.fault({.fault = PacketFault::corrupt, .packets = PacketClass::request, .nth = 1});
    one_operation(opcode);
    a.heal();
    EXPECT_EQ(b.counter("bad_packets"), ++damaged);
  }
  damaged = 0;
  for (const ibv_wr_opcode opcode : opcodes) {
    b.fault({.fault = PacketFault::corrupt, .nth = 1});  // ACK, READ response, atomic response
    one_operation(opcode);
    b.heal();
    EXPECT_EQ(a.counter("bad_packets"), ++damaged);
  }
}

TEST_F(Retransmission, DelayedPacketArrivesWhenItIsDue) {
  post_receives(1);
  a.fault({.fault = PacketFault::delay, .nth = 1, .delay = microseconds(40)});
  const Time posted = network.now();
  ASSERT_EQ(post_send(a, 1, source, 100), 0);
  EXPECT_EQ(completion(b).status, IBV_WC_SUCCESS);
  EXPECT_EQ(network.now() - posted, microseconds(41)) << "held back, then one latency";
  EXPECT_EQ(a.counter("retransmits"), 0U);
}

// -- done once -------------------------------------------------------------------------------------------------------

TEST_F(Retransmission, RepeatedWriteIsNotDoneTwice) {
  fill(a, source, 100, 1);
  b.fault({.fault = PacketFault::drop, .packets = PacketClass::acknowledge, .nth = 1});
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, source, 100, b, target), 0);
  network.run_for(microseconds(10));
  ASSERT_TRUE(same(a, source, b, target, 100));
  b.set_word(target, 77);  // the target's program goes on with the data
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.counter("duplicates"), 1U);
  EXPECT_EQ(b.word(target), 77U) << "written a second time";
}

TEST_F(Retransmission, RepeatedSendTakesNoSecondReceive) {
  post_receives(2);
  b.fault({.fault = PacketFault::drop, .packets = PacketClass::acknowledge, .nth = 1});
  fill(a, source, 100, 1);
  ASSERT_EQ(post_send(a, 1, source, 100), 0);
  EXPECT_EQ(completion(b).wr_id, 100U);
  b.set_word(target, 77);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  settle();
  EXPECT_TRUE(polled(b).empty());
  EXPECT_EQ(b.word(target), 77U);
  EXPECT_EQ(b.counter("duplicates"), 1U);
}

TEST_F(Retransmission, RepeatedReadReadsAgain) {
  b.set_word(target, 1);
  b.fault({.fault = PacketFault::drop, .packets = PacketClass::response, .nth = 1});
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_READ, source, 8, b, target), 0);
  network.run_for(microseconds(10));
  b.set_word(target, 2);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(a.word(source), 2U);
  EXPECT_EQ(b.counter("duplicates"), 1U);
}

TEST_F(Retransmission, RepeatedAtomicIsAnsweredFromTheSavedResult) {
  b.set_word(target, 10);
  b.fault({.fault = PacketFault::drop, .packets = PacketClass::response, .nth = 1});
  ASSERT_EQ(post_fetch_add(a, 1, source, b, target, 5), 0);
  network.run_for(microseconds(10));
  ASSERT_EQ(b.word(target), 15U);
  b.set_word(target, 1000);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(a.word(source), 10U) << "what it was the first time";
  EXPECT_EQ(b.word(target), 1000U) << "added a second time";

  b.fault({.fault = PacketFault::drop, .packets = PacketClass::response, .nth = 1});
  ASSERT_EQ(post_compare_swap(a, 2, source, b, target, 1000, 7), 0);
  network.run_for(microseconds(10));
  ASSERT_EQ(b.word(target), 7U);
  b.set_word(target, 1000);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(a.word(source), 1000U);
  EXPECT_EQ(b.word(target), 1000U) << "swapped a second time";
}

TEST_F(Retransmission, AsManyAtomicsAsAgreedAreEachExecutedOnce) {
  b.fault({.fault = PacketFault::drop, .packets = PacketClass::response, .rate = 1, .limit = settings.rd_atomic});
  for (std::uint64_t i = 0; i < settings.rd_atomic; ++i) {
    ASSERT_EQ(post_fetch_add(a, i, source + 8 * i, b, target, 1), 0);
  }
  ASSERT_EQ(completions(a, settings.rd_atomic).size(), settings.rd_atomic);
  for (std::uint64_t i = 0; i < settings.rd_atomic; ++i) EXPECT_EQ(a.word(source + 8 * i), i);
  EXPECT_EQ(b.word(target), settings.rd_atomic);
}

// The message is delivered, but its sender never learns of it.
TEST_F(Retransmission, DeliveredButTheSenderFails) {
  post_receives(1);
  fill(a, source, 100, 9);
  b.fault({.fault = PacketFault::drop, .packets = PacketClass::acknowledge, .rate = 1});
  ASSERT_EQ(post_send(a, 1, source, 100), 0);
  const ibv_wc received = completion(b);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_TRUE(same(a, source, b, target, 100));
  EXPECT_EQ(completion(a).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(a.state(), IBV_QPS_ERR);
  EXPECT_EQ(b.state(), IBV_QPS_RTS) << "the receiver believes that all is well";
  EXPECT_EQ(b.counter("duplicates"), settings.retry_cnt);
}

}  // namespace
}  // namespace verbatim::soft::testing
