// Puts, gets, notices and atomics on a peer's region.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cluster.hpp"
#include "payload.hpp"
#include "transport/remote_region.hpp"

namespace verbatim::transport::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::byte untouched{0xee};

class OneSided : public testing::Test {
 protected:
  void start(const soft::DeviceConfig& device = {}, std::size_t region_bytes = (1U << 20) + 64,
             const Config& config = Cluster::plain_config()) {
    a = &cluster.add(config, device);
    b = &cluster.add(config, device);
    std::tie(ab, ba) = cluster.connect(*a, *b);
    memory.assign(region_bytes, untouched);
    region = b->engine->register_memory(memory.data(), memory.size());
    b->engine->remember_region(region);
  }
  [[nodiscard]] RemoteRegion remote() const {
    return RemoteRegionAccess::make(reinterpret_cast<std::uintptr_t>(memory.data()), memory.size(),
                                    region.rkey().value);
  }
  // Up to the end of a test, before what the requests are of.
  [[nodiscard]] const Completion& finish(const Request& request) {
    EXPECT_TRUE(cluster.run_until([&] { return request.done(); }));
    return request.completion();
  }
  void put_and_get(std::size_t bytes, std::uint64_t offset) {
    std::ranges::fill(memory, untouched);
    const Bytes source = pattern(bytes, bytes * 31 + offset);
    Request put = ab->put(source.data(), bytes, remote(), offset, std::nullopt);
    ASSERT_EQ(finish(put).outcome, Outcome::delivered) << bytes << " bytes at " << offset;
    Bytes expected(memory.size(), untouched);
    std::ranges::copy(source, expected.begin() + static_cast<std::ptrdiff_t>(offset));
    ASSERT_TRUE(memory == expected) << bytes << " bytes at " << offset;
    Bytes target(bytes + 1, untouched);
    Request get = ab->get(target.data(), bytes, remote(), offset);
    ASSERT_EQ(finish(get).outcome, Outcome::delivered);
    EXPECT_EQ(target.back(), untouched);
    target.pop_back();
    ASSERT_TRUE(target == source) << bytes << " bytes at " << offset;
  }

  Cluster cluster;
  Node* a = nullptr;
  Node* b = nullptr;
  Channel* ab = nullptr;
  Channel* ba = nullptr;
  Bytes memory;
  mem::RegisteredRegion region;
};

TEST_F(OneSided, MovesAnyLength) {
  start();
  const std::uint32_t inlined = ab->lane().queue().max_inline();
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{inlined}, std::size_t{inlined} + 1, (std::size_t{1} << 20) + 3}) {
    put_and_get(bytes, 0);
  }
  // As far as the end, and of nothing there.
  put_and_get(memory.size(), 0);
  put_and_get(0, memory.size());
}

TEST_F(OneSided, MovesToAnyOffset) {
  start({}, 5000);
  for (std::uint64_t offset = 0; offset <= 16; ++offset) {
    for (std::size_t bytes = 0; bytes <= 17; ++bytes) put_and_get(bytes, offset);
    for (std::size_t bytes = 4095; bytes <= 4097; ++bytes) put_and_get(bytes, offset);
  }
}

TEST_F(OneSided, OutsideOfTheRegionIsRefusedAtOnce) {
  start({}, 4096);
  Bytes own(8192);
  std::uint64_t before = 77;
  std::vector<Request> refused;
  refused.push_back(ab->put(own.data(), 4097, remote(), 0, std::nullopt));
  refused.push_back(ab->put(own.data(), 1, remote(), 4096, Tag{1}));
  refused.push_back(ab->put(own.data(), 2, remote(), UINT64_MAX, std::nullopt));
  refused.push_back(ab->get(own.data(), 4096, remote(), 1));
  refused.push_back(ab->get(own.data(), 1, RemoteRegion(), 0));
  refused.push_back(ab->atomic(RequestKind::fetch_add, {.operand = 1, .before = &before}, remote(), 4089));
  for (const Request& request : refused) {
    EXPECT_TRUE(request.done());
    EXPECT_EQ(request.completion().outcome, Outcome::not_delivered);
    EXPECT_EQ(request.completion().status, Status::remote_access);
  }
  Request nowhere = ab->put(nullptr, 1, remote(), 0, std::nullopt);
  EXPECT_EQ(nowhere.completion().status, Status::invalid_argument);
  Request misaligned = ab->atomic(RequestKind::fetch_add, {.operand = 1, .before = &before}, remote(), 4);
  EXPECT_EQ(misaligned.completion().status, Status::invalid_argument);
  EXPECT_EQ(before, 77U);
  put_and_get(100, 0);  // and the channel goes on
}

TEST_F(OneSided, ToARegionThatIsGoneEndsWithRemoteAccessAndSoDoesTheChannel) {
  for (const bool by_get : {false, true}) {
    start({}, 100'000);
    const RemoteRegion gone = remote();
    b->engine->forget_region(region);
    region = {};
    Bytes own(100'000);
    Request bad =
        by_get ? ab->get(own.data(), own.size(), gone, 0) : ab->put(own.data(), own.size(), gone, 0, std::nullopt);
    Request behind = ab->put(own.data(), own.size(), gone, 0, std::nullopt);
    EXPECT_EQ(finish(bad).status, Status::remote_access);
    EXPECT_EQ(finish(behind).status, Status::remote_access);
    EXPECT_EQ(ab->reason(), Status::remote_access);
    EXPECT_TRUE(cluster.run_until([&] { return ba->state() == ChannelState::closed; }));
    EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte byte) { return byte == untouched; }));
  }
}

TEST_F(OneSided, AnAtomicOnARegionThatIsGoneIsRefusedAlone) {
  start({}, 4096);
  const RemoteRegion gone = remote();
  b->engine->forget_region(region);
  Request bad = ab->atomic(RequestKind::fetch_add, {.operand = 1}, gone, 0);
  EXPECT_EQ(finish(bad).status, Status::remote_access);
  EXPECT_EQ(bad.completion().outcome, Outcome::not_delivered);
  EXPECT_EQ(memory[0], untouched);
  b->engine->remember_region(region);
  put_and_get(100, 0);
}

TEST_F(OneSided, ANoticeImpliesTheDataHoweverLate) {
  for (const bool write_queue : {false, true}) {
    soft::DeviceConfig device;
    device.faults.packets = {{.fault = soft::PacketFault::delay, .rate = 0.1, .delay = milliseconds(1)},
                             {.fault = soft::PacketFault::drop, .rate = 0.02}};
    Config config = Cluster::plain_config();
    config.rendezvous.fragment_bytes = 10'000;
    if (write_queue) {
      config.write_queue.enabled = Switch::on;
      config.write_queue.promote_after = 1;
    }
    start(device, 300'000, config);
    for (std::uint64_t round = 0; round < 40; ++round) {
      const std::size_t bytes = round % 3 == 0 ? 8 : 1 + round * 7'001;
      const Bytes source = pattern(bytes, round);
      Request put = ab->put(source.data(), bytes, remote(), round, Tag{round});
      Request notice = b->engine->receive(nullptr, 0, Tag{round}, exact_tag, any_source);
      bool whole = false;
      ASSERT_TRUE(cluster.run_until([&] {
        if (!notice.done()) return false;
        whole = std::equal(source.begin(), source.end(), memory.begin() + static_cast<std::ptrdiff_t>(round));
        return true;
      }));
      EXPECT_TRUE(notice.ok());
      ASSERT_TRUE(whole) << "notice without the data, round " << round;
      EXPECT_TRUE(finish(put).outcome == Outcome::delivered);
    }
  }
}

TEST_F(OneSided, IsSplitAtTheDevicesLongestMessage) {
  constexpr std::size_t limit = 64 * 1024;
  soft::DeviceConfig device;
  device.limits.max_msg_bytes = limit;
  start(device);
  for (const std::size_t bytes : {limit - 1, limit, limit + 1, 3 * limit + 7}) {
    put_and_get(bytes, 1);
    const Bytes sent = pattern(bytes, 5);
    Bytes received(bytes);
    Request receive = b->engine->receive(received.data(), bytes, Tag{1}, exact_tag, any_source);
    Request send = ab->send(sent.data(), bytes, Tag{1});
    EXPECT_EQ(finish(receive).status, Status::ok);
    EXPECT_EQ(finish(send).status, Status::ok);
    EXPECT_TRUE(received == sent) << bytes;
  }
}

// Only one end's device has that limit.
TEST_F(OneSided, IsSplitAtThePeersLongestMessage) {
  constexpr std::size_t limit = 64 * 1024;
  a = &cluster.add();
  soft::DeviceConfig device;
  device.limits.max_msg_bytes = limit;
  b = &cluster.add(Cluster::plain_config(), device);
  std::tie(ab, ba) = cluster.connect(*a, *b);
  memory.assign(300'000, untouched);
  region = b->engine->register_memory(memory.data(), memory.size());
  for (const std::size_t bytes : {limit, limit + 1, 3 * limit + 7}) put_and_get(bytes, 1);
}

TEST_F(OneSided, AtomicsGiveWhatWasThereInTheOrderAsked) {
  start({}, 4096);
  std::uint64_t word = 40;
  std::memcpy(memory.data() + 8, &word, sizeof(word));
  std::uint64_t before[5] = {};
  std::vector<Request> requests;
  const auto ask = [&](RequestKind kind, const Channel::AtomicOperands& operands) {
    requests.push_back(ab->atomic(kind, operands, remote(), 8));
  };
  ask(RequestKind::fetch_add, {.operand = 2, .before = &before[0]});
  ask(RequestKind::compare_swap, {.operand = 42, .swap = 7, .before = &before[1]});
  ask(RequestKind::compare_swap, {.operand = 42, .swap = 9, .before = &before[2]});
  ask(RequestKind::fetch_add, {.operand = ~std::uint64_t{0}, .before = &before[3]});
  ask(RequestKind::fetch_add, {.operand = 1});
  EXPECT_TRUE(cluster.run_until([&] { return all_done(requests); }));
  for (const Request& request : requests) EXPECT_TRUE(request.ok());
  EXPECT_EQ(before[0], 40U);
  EXPECT_EQ(before[1], 42U);
  EXPECT_EQ(before[2], 7U);
  EXPECT_EQ(before[3], 7U);
  std::memcpy(&word, memory.data() + 8, sizeof(word));
  EXPECT_EQ(word, 7U);
}

TEST_F(OneSided, TwoHundredAtomicsUnderWayAtOnceAreEachExecutedOnce) {
  start({}, 4096);
  std::ranges::fill(memory, std::byte{0});
  std::vector<std::uint64_t> before(200);
  std::vector<Request> requests;
  for (std::uint64_t& value : before) {
    requests.push_back(ab->atomic(RequestKind::fetch_add, {.operand = 3, .before = &value}, remote(), 16));
  }
  EXPECT_TRUE(std::ranges::none_of(requests, [](const Request& request) { return request.done(); }));
  ASSERT_TRUE(cluster.run_until([&] { return all_done(requests); }));
  for (std::uint64_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i], 3 * i);
}

}  // namespace
}  // namespace verbatim::transport::test
