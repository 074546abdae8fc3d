// What packets are marked with, between processes whose tables differ: both ends find their partition's key by its
// value, and both directions carry the service level and traffic class that was configured.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "device/soft/verbs/objects.hpp"
#include "device/soft/verbs/soft_context.hpp"
#include "message_process/meeting.hpp"
#include "transport/channel.hpp"
#include "unit/transport/payload.hpp"

namespace verbatim::process {
namespace {

using transport::test::Bytes;
using transport::test::pattern;

constexpr Tag tag{1};
constexpr std::uint16_t pkey = 0x8001;
constexpr std::uint8_t service_level = 3;
constexpr std::uint8_t traffic_class = 106;

Config marked_config() {
  Config config = plain_config();
  config.device.pkey = pkey;
  config.device.service_level = service_level;
  config.device.traffic_class = traffic_class;
  return config;
}

// The device beneath a channel, which no program sees.
struct Beneath {
  explicit Beneath(const Channel& channel)
      : queue_pair(channel.get()->lane().queue().queue_pair().handle()),
        device(*soft::SoftQueuePair::of(queue_pair).owner) {}
  [[nodiscard]] std::uint64_t counter(std::string_view name) const {
    for (const device::Counter& counter : device.counters(1)) {
      if (counter.name == name) return counter.value;
    }
    throw std::logic_error(fmt::format("the device has no counter {}", name));
  }

  ibv_qp* queue_pair;
  soft::SoftContext& device;
};

// Short, long, and in both directions at once.
void exchange(Worker& worker, Channel& channel) {
  for (const std::size_t bytes : {100, 300'000}) {
    const Bytes data = pattern(bytes, bytes);
    Bytes received(bytes);
    const Request receive = worker.recv(received.data(), bytes, tag, exact_tag, channel.id());
    finish(worker, channel.send(data.data(), bytes, tag), "a send");
    finish(worker, receive, "a receive");
    require(received == data, "other bytes than were sent");
  }
}

void expect_marks(const Channel& channel, std::uint16_t pkey_index) {
  const Beneath beneath(channel);
  ibv_qp_attr is{};
  ibv_qp_init_attr init{};
  require(beneath.device.query_qp(beneath.queue_pair, is, IBV_QP_AV | IBV_QP_PKEY_INDEX, init) == 0, "query");
  require(is.pkey_index == pkey_index, fmt::format("P_Key index {}", is.pkey_index));
  require(is.ah_attr.sl == service_level, fmt::format("service level {}", is.ah_attr.sl));
  require(is.ah_attr.grh.traffic_class == traffic_class, fmt::format("traffic class {}", is.ah_attr.grh.traffic_class));
  require(beneath.counter("packets_received") > 0, "nothing travelled");
  require(beneath.counter("bad_pkeys") == 0, "packets of another partition came");
  require(beneath.counter("uneven_marks") == 0, "packets came that were marked otherwise");
}

void run(const TemporaryDirectory& directory, Meeting& meeting, bool listens) {
  use_soft_device(directory, {{"PKEYS", listens ? "0xffff, 0x8001" : "0x8001, 0xffff"}});
  Context context(marked_config());
  Worker worker(context);
  Channel channel = listens ? receive_peer(worker, meeting.door) : connect_to_peer(worker, meeting.door);
  exchange(worker, channel);
  meeting.wait(worker);
  expect_marks(channel, listens ? 1 : 0);
  meeting.wait(worker);
}

TEST(MarksBetweenProcesses, AreTheConfiguredOnesInBothDirections) {
  const TemporaryDirectory directory;
  const Shared<Meeting> meeting;
  PeerProcess listener([&] { run(directory, *meeting, true); });
  PeerProcess dialler([&] { run(directory, *meeting, false); });
  EXPECT_EQ(listener.wait(), 0);
  EXPECT_EQ(dialler.wait(), 0);
}

}  // namespace
}  // namespace verbatim::process
