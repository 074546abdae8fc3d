// Order between processes: messages of one tag whatever their size and protocol, and a notice behind the bytes that it
// speaks of, also where packets are held up.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "message_process/meeting.hpp"
#include "unit/transport/payload.hpp"

namespace verbatim::process {
namespace {

using transport::test::Bytes;
using transport::test::pattern;

constexpr std::size_t small_bytes = 64;
constexpr std::size_t large_bytes = 1 << 20;
constexpr std::uint64_t messages = 60;
constexpr std::uint64_t rounds = 40;
constexpr Tag tag{3};
constexpr Tag region_tag{4};

constexpr std::size_t bytes_of(std::uint64_t number) {
  return number % 2 == 0 ? small_bytes : large_bytes;
}

// Half of the receives are there before the messages, half of them come after.
void exchange_alternating(Meeting& meeting, Worker& worker, Channel& channel) {
  std::vector<Bytes> received(messages, Bytes(large_bytes));
  std::vector<Request> receives;
  const auto post_receives_until = [&](std::uint64_t end) {
    while (receives.size() < end) {
      Bytes& into = received[receives.size()];
      receives.push_back(worker.recv(into.data(), into.size(), tag, exact_tag, channel.id()));
    }
  };
  post_receives_until(messages / 2);
  meeting.wait(worker);
  std::vector<Bytes> data;
  std::vector<Request> sends;
  for (std::uint64_t number = 0; number < messages; ++number) {
    data.push_back(pattern(bytes_of(number), number));
    sends.push_back(channel.send(data.back().data(), data.back().size(), tag));
    worker.progress();
  }
  finish(worker, receives.back(), "the last early receive");
  post_receives_until(messages);
  for (std::uint64_t number = 0; number < messages; ++number) {
    finish(worker, sends[number], "a send");
    finish(worker, receives[number], "a receive");
    received[number].resize(receives[number].completion().bytes);
    require(received[number] == pattern(bytes_of(number), number), fmt::format("not message {}, but another", number));
  }
  meeting.wait(worker);
}

// Before each notice the whole region is written anew; after it nothing old is left.
void put_and_notify(Worker& worker, Channel& channel) {
  RemoteRegion::Encoded encoded;
  finish(worker, worker.recv(encoded.data(), encoded.size(), region_tag, exact_tag, channel.id()), "the region");
  const RemoteRegion region = RemoteRegion::decode(encoded);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Bytes large = pattern(large_bytes, round);
    const Bytes small = pattern(small_bytes, round + 1000);
    const Request put = channel.put(large.data(), large.size(), region, 0);
    const Request notified = channel.put_notify(small.data(), small.size(), region, large_bytes, Tag{round});
    finish(worker, put, "a put");
    finish(worker, notified, "a put with a notice");
    require(receive_word(worker, channel, tag) == round, "another word came");
  }
}

void watch_region(Worker& worker, Channel& channel) {
  const Region region = worker.allocate(large_bytes + small_bytes);
  const RemoteRegion::Encoded encoded = region.remote().encode();
  finish(worker, channel.send(encoded.data(), encoded.size(), region_tag), "the region");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    finish(worker, worker.recv(nullptr, 0, Tag{round}, exact_tag, channel.id()), "a notice");
    const Bytes large = pattern(large_bytes, round);
    const Bytes small = pattern(small_bytes, round + 1000);
    require(std::equal(small.begin(), small.end(), region.data() + large_bytes), "a notice without its bytes");
    require(std::equal(large.begin(), large.end(), region.data()), "a notice before the bytes that were put first");
    send_word(worker, channel, round, tag);
  }
}

class OrderBetweenProcesses : public testing::TestWithParam<const char*> {
 protected:
  // `listens` and `dials` are what the two do.
  template <typename Listens, typename Dials>
  void run(Listens listens, Dials dials) {
    const TemporaryDirectory directory;
    const Shared<Meeting> meeting;
    const auto side = [&](bool listener) {
      use_soft_device(directory, {{"FAULTS", GetParam()}});
      Config config = plain_config();
      config.worker.wait = WaitMode::poll;
      Context context(config);
      Worker worker(context);
      if (listener) {
        Channel channel = receive_peer(worker, meeting->door);
        listens(*meeting, worker, channel);
      } else {
        Channel channel = connect_to_peer(worker, meeting->door);
        dials(*meeting, worker, channel);
      }
    };
    PeerProcess listener([&] { side(true); });
    PeerProcess dialler([&] { side(false); });
    EXPECT_EQ(listener.wait(), 0);
    EXPECT_EQ(dialler.wait(), 0);
  }
};

TEST_P(OrderBetweenProcesses, HoldsForMessagesOfOneTagWhateverTheirSizes) {
  run(exchange_alternating, exchange_alternating);
}

TEST_P(OrderBetweenProcesses, HoldsForANoticeBehindWhatWasPut) {
  run([](Meeting&, Worker& worker, Channel& channel) { watch_region(worker, channel); },
      [](Meeting&, Worker& worker, Channel& channel) { put_and_notify(worker, channel); });
}

// One packet at a time: what follows it is there first.
constexpr const char* held_up =
    "delay:nth=30,delay=10ms; reorder:nth=300,delay=1ms; delay:nth=900,delay=3ms; delay:nth=2000,delay=10ms";

INSTANTIATE_TEST_SUITE_P(Packets, OrderBetweenProcesses, testing::Values("", held_up),
                         [](const auto& faults) { return faults.param[0] == '\0' ? "InTime" : "HeldUp"; });

}  // namespace
}  // namespace verbatim::process
