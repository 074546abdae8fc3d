// Message lengths around the packet size and far above it, packet numbers around their wrap, addresses of any
// alignment.
#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

enum class Operation { send, write, read };

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::send:
      return "Send";
    case Operation::write:
      return "Write";
    case Operation::read:
      return "Read";
  }
  return "";
}

std::string name_of(const testing::TestParamInfo<Operation>& info) {
  return to_string(info.param);
}

class Moves : public ConformanceCase {
 protected:
  // Moves bytes from `from` in the one side to `to` in the other, and looks at them and at what is around them.
  void move(Operation operation, std::size_t from, std::size_t to, std::uint32_t bytes, std::uint32_t seed) {
    constexpr std::size_t guard = 16;
    const Side& source = operation == Operation::read ? b : a;
    const Side& target = operation == Operation::read ? a : b;
    source.fill(from, bytes, seed);
    target.clear(to - guard, bytes + 2 * guard);
    switch (operation) {
      case Operation::send:
        b.receive(seed, {b.piece(to, bytes)});
        a.post(send(seed, {a.piece(from, bytes)}));
        EXPECT_EQ(b.received().byte_len, bytes);
        EXPECT_TRUE(completed(a.sent(), seed, IBV_WC_SEND));
        break;
      case Operation::write:
        a.post(write(seed, {a.piece(from, bytes)}, b, to));
        EXPECT_TRUE(completed(a.sent(), seed, IBV_WC_RDMA_WRITE));
        break;
      case Operation::read:
        a.post(read(seed, {a.piece(to, bytes)}, b, from));
        EXPECT_TRUE(completed(a.sent(), seed, IBV_WC_RDMA_READ));
        break;
    }
    EXPECT_TRUE(holds_pattern(target, to, bytes, seed)) << bytes << " bytes from " << from << " to " << to;
    EXPECT_TRUE(holds_zeros(target, to - guard, guard));
    EXPECT_TRUE(holds_zeros(target, to + bytes, guard));
  }
};

class Sizes : public Moves, public testing::WithParamInterface<Operation> {};

TEST_P(Sizes, AroundThePacketSize) {
  for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    if (mtu > a.port.active_mtu) continue;
    Route route;
    route.mtu = mtu;
    connect(IBV_QPT_RC, route);
    const std::uint32_t packet = 128u << mtu;
    std::uint32_t seed = 0;
    for (const std::uint32_t bytes :
         {1u, packet - 1, packet, packet + 1, 2 * packet - 1, 2 * packet, 2 * packet + 1, 4097u, 20'000u}) {
      move(GetParam(), 100, 300, bytes, ++seed);
    }
  }
}

TEST_P(Sizes, FarAboveThePacketSize) {
  connect(IBV_QPT_RC, {}, (1 << 20) + 4096);
  std::uint32_t seed = 0;
  for (const std::uint32_t bytes : {65'535u, 65'536u, 65'537u, (1u << 20) - 1, (1u << 20) + 3}) {
    move(GetParam(), 17, 33, bytes, ++seed);
  }
}

TEST_P(Sizes, AtAnyAlignment) {
  connect();
  std::uint32_t seed = 0;
  for (const std::size_t from : {0u, 1u, 3u, 7u, 8u, 15u}) {
    for (const std::size_t to : {0u, 1u, 5u, 8u, 16u}) {
      for (const std::uint32_t bytes : {1u, 9u, 17u, 1025u, 4096u}) move(GetParam(), from, 64 + to, bytes, ++seed);
    }
  }
}

TEST_P(Sizes, AcrossTheEndOfThePacketNumbers) {
  Route route;
  route.send_psn = 0xfffffe;
  route.receive_psn = 0xfffff0;
  connect(IBV_QPT_RC, route);
  for (std::uint32_t i = 1; i <= 12; ++i) {
    move(GetParam(), 0, 1000, 5000, i);
    // And the other way, so that both directions' numbers wrap.
    a.receive(i, {a.piece(32'768, 3000)});
    b.post(send(i, {b.piece(32'768, 3000)}));
    EXPECT_TRUE(completed(a.received(), i, IBV_WC_RECV));
    EXPECT_TRUE(completed(b.sent(), i, IBV_WC_SEND));
  }
}

INSTANTIATE_TEST_SUITE_P(Moving, Sizes, testing::Values(Operation::send, Operation::write, Operation::read), name_of);

class PacketNumbers : public Moves {};

TEST_F(PacketNumbers, ManyMessagesInFlightAcrossTheWrap) {
  Route route;
  route.send_psn = 0xffffe0;
  connect(IBV_QPT_RC, route);
  constexpr std::uint32_t count = 30;
  for (std::uint32_t i = 0; i < count; ++i) {
    a.fill(i * 2000, 2000, i);
    b.receive(i, {b.piece(i * 2000, 2000)});
  }
  for (std::uint32_t i = 0; i < count; ++i) a.post(send(i, {a.piece(i * 2000, 2000)}));
  const std::vector<ibv_wc> received = b.received(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    EXPECT_TRUE(completed(received[i], i, IBV_WC_RECV));
    EXPECT_TRUE(holds_pattern(b, i * 2000, 2000, i));
  }
  EXPECT_EQ(a.sent(count).size(), count);
}

}  // namespace
}  // namespace verbatim::conformance
