// Every length and alignment, in pieces and in none, one packet at a time and in trains.
#include <numeric>
#include <string>

#include "base/random.hpp"
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

constexpr std::size_t guard = 32;
constexpr std::byte guard_value{0xa7};
constexpr std::uint32_t far_above = (1U << 20) + 3;

struct How {
  ibv_wr_opcode opcode;
  std::uint32_t train_limit;  // packets
};

std::string name_of(const ::testing::TestParamInfo<How>& info) {
  const char* opcode = info.param.opcode == IBV_WR_SEND         ? "Send"
                       : info.param.opcode == IBV_WR_RDMA_WRITE ? "Write"
                                                                : "Read";
  return std::string(opcode) + "InTrainsOf" + std::to_string(info.param.train_limit);
}

class Sizes : public RcPair, public ::testing::WithParamInterface<How> {
 protected:
  static constexpr std::size_t local = 64;
  static constexpr std::size_t remote = 128;
  Sizes() : RcPair({.train_limit = GetParam().train_limit}) { memory_bytes = far_above + 4096; }

  // Where bytes are read and where they are written.
  [[nodiscard]] Side& from() { return GetParam().opcode == IBV_WR_RDMA_READ ? b : a; }
  [[nodiscard]] Side& to() { return GetParam().opcode == IBV_WR_RDMA_READ ? a : b; }

  // Moves `length` bytes between a (split into `pieces`) and b, and looks at them and at their neighbours.
  void move(std::size_t at_a, std::size_t at_b, std::uint32_t length, std::vector<ibv_sge> pieces) {
    const std::size_t source = &from() == &a ? at_a : at_b;
    const std::size_t target = &to() == &a ? at_a : at_b;
    ++seed_;
    std::byte* const bytes = from().memory.data() + source;
    for (std::uint32_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(seed_ + i + (i >> 8));
    std::memset(&to().memory[target - guard], static_cast<int>(guard_value), length + 2 * guard);
    if (GetParam().opcode == IBV_WR_SEND) {
      ASSERT_EQ(post_receive(b, 1, at_b, length), 0) << "exactly as long";
    }
    ASSERT_EQ(post(a, 2, GetParam().opcode, 0, 0,
                   [&](ibv_send_wr& wr) {
                     wr.sg_list = pieces.data();
                     wr.num_sge = static_cast<int>(pieces.size());
                     wr.wr.rdma = {b.address(at_b), b.mr->rkey};
                   }),
              0);
    ASSERT_EQ(completion(a).status, IBV_WC_SUCCESS);
    if (GetParam().opcode == IBV_WR_SEND) {
      ASSERT_EQ(completion(b).byte_len, length);
    }
    ASSERT_TRUE(same(from(), source, to(), target, length));
    for (std::size_t i = 0; i < guard; ++i) {
      ASSERT_EQ(to().memory[target - guard + i], guard_value) << "before";
      ASSERT_EQ(to().memory[target + length + i], guard_value) << "behind";
    }
  }
  void move(std::size_t at_a, std::size_t at_b, std::uint32_t length) {
    SCOPED_TRACE(std::to_string(length) + " bytes, a +" + std::to_string(at_a - local) + ", b +" +
                 std::to_string(at_b - remote));
    move(at_a, at_b, length, {{a.address(at_a), length, a.mr->lkey}});
  }

  unsigned seed_ = 0;
};

TEST_P(Sizes, AtEachAlignment) {
  std::vector<std::uint32_t> lengths(18);
  std::iota(lengths.begin(), lengths.end(), 0U);
  for (const std::uint32_t length : {1023U, 1024U, 1025U, 4095U, 4096U, 4097U}) lengths.push_back(length);
  for (std::size_t at_a = 0; at_a <= 16; ++at_a) {
    for (std::size_t at_b = 0; at_b <= 16; ++at_b) {
      for (const std::uint32_t length : lengths) {
        move(local + at_a, remote + at_b, length);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Sizes, FarAboveThePacketSizeAtEachAlignment) {
  // Each alignment of either side once; all pairs of them are had with shorter messages.
  for (std::size_t offset = 0; offset <= 16; ++offset) {
    move(local + offset, remote + (offset * 7) % 17, far_above);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Sizes, InOddPieces) {
  Random random(5);
  for (const std::uint32_t length : {0U, 1U, 5U, 1023U, 1024U, 1025U, 5000U, 65537U}) {
    for (int round = 0; round < 20; ++round) {
      // Up to four pieces, some of them empty, end to end.
      std::vector<ibv_sge> pieces;
      std::uint32_t at = 0;
      for (int i = 0; i < 3; ++i) {
        const auto bytes = static_cast<std::uint32_t>(random.below(length - at + 1));
        pieces.push_back({a.address(local + at), bytes, a.mr->lkey});
        at += bytes;
      }
      pieces.push_back({a.address(local + at), length - at, a.mr->lkey});
      move(local, remote, length, pieces);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Sizes, WithoutPieces) {
  move(local, remote, 0, {});
}

// Nothing is touched, so no key is asked and the address may be nowhere.
TEST_P(Sizes, OfNothingAtNoAddress) {
  if (GetParam().opcode == IBV_WR_SEND) {
    ASSERT_EQ(post_receive(b, 1, remote, 0), 0);
  }
  ASSERT_EQ(post(a, 2, GetParam().opcode, 0, 0,
                 [&](ibv_send_wr& wr) {
                   wr.sg_list->addr = 0;
                   wr.sg_list->lkey = 0;
                   wr.wr.rdma = {0, 0};
                 }),
            0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
}

// Trains sent again after a loss need not begin where they did.
TEST_P(Sizes, AcrossLossThatComesAndGoes) {
  for (std::uint64_t nth = 1; nth <= 12; ++nth) {
    a.fault({.fault = PacketFault::drop, .nth = nth});
    std::memset(to().memory.data(), 0, to().memory.size());
    fill(from(), local, 12000, static_cast<unsigned>(nth));
    if (GetParam().opcode == IBV_WR_SEND) {
      ASSERT_EQ(post_receive(b, 1, local, 12000), 0);
    }
    ASSERT_EQ(post_rdma(a, 2, GetParam().opcode, local, 12000, b, local), 0);
    a.heal();  // what is sent again travels in trains
    ASSERT_EQ(completion(a).status, IBV_WC_SUCCESS);
    EXPECT_TRUE(same(a, local, b, local, 12000));
    if (GetParam().opcode == IBV_WR_SEND) {
      EXPECT_EQ(completion(b).byte_len, 12000U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Moving, Sizes,
                         ::testing::Values(How{IBV_WR_SEND, 1}, How{IBV_WR_SEND, 64}, How{IBV_WR_RDMA_WRITE, 1},
                                           How{IBV_WR_RDMA_WRITE, 64}, How{IBV_WR_RDMA_READ, 1},
                                           How{IBV_WR_RDMA_READ, 64}),
                         name_of);

class Pieces : public RcPair {};

TEST_F(Pieces, AMessageFillsTheReceivesPiecesInOrder) {
  fill(a, 0, 5000, 3);
  ibv_sge pieces[4] = {{b.address(100), 1, b.mr->lkey},
                       {b.address(200), 0, b.mr->lkey},
                       {b.address(8000), 2999, b.mr->lkey},
                       {b.address(20000), 4000, b.mr->lkey}};
  ibv_recv_wr wr{.wr_id = 1, .next = nullptr, .sg_list = pieces, .num_sge = 4};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(b.qp, &wr, &bad), 0);
  ASSERT_EQ(post_send(a, 2, 0, 5000), 0);
  EXPECT_EQ(completion(b).byte_len, 5000U);
  EXPECT_TRUE(same(a, 0, b, 100, 1));
  EXPECT_TRUE(same(a, 1, b, 8000, 2999));
  EXPECT_TRUE(same(a, 3000, b, 20000, 2000));
  EXPECT_EQ(b.memory[101], std::byte{0});
  EXPECT_EQ(b.memory[22000], std::byte{0});
}

TEST_F(Pieces, AReadFillsItsPiecesInOrder) {
  fill(b, 0, 5000, 3);
  ibv_sge pieces[3] = {
      {a.address(100), 7, a.mr->lkey}, {a.address(8000), 2993, a.mr->lkey}, {a.address(20000), 2000, a.mr->lkey}};
  ASSERT_EQ(post(a, 2, IBV_WR_RDMA_READ, 0, 0,
                 [&](ibv_send_wr& wr) {
                   wr.sg_list = pieces;
                   wr.num_sge = 3;
                   wr.wr.rdma = {b.address(), b.mr->rkey};
                 }),
            0);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(same(b, 0, a, 100, 7));
  EXPECT_TRUE(same(b, 7, a, 8000, 2993));
  EXPECT_TRUE(same(b, 3000, a, 20000, 2000));
}

}  // namespace
}  // namespace verbatim::soft::testing
