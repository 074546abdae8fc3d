// Which values don't fit together, and which fit and are questioned.
#include "base/config/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/config/knobs.hpp"
#include "base/error.hpp"
#include "device/queue_pair/units.hpp"

namespace verbatim::config {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What check() says of the default configuration after `change`.
template <typename Change>
std::string verdict(Change change) {
  Config config;
  change(config);
  try {
    check(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "fits";
}

TEST(ConfigCheck, FindsNothingWrongWithTheDefaults) {
  EXPECT_EQ(verdict([](Config&) {}), "fits");
  EXPECT_THAT(doubts(Config{}), IsEmpty());
}

TEST(ConfigCheck, HoldsMembersThatAProgramSetToTheirRanges) {
  EXPECT_THAT(verdict([](Config& c) { c.rc.receive_depth = 1; }),
              AllOf(HasSubstr("rc.receive_depth"), HasSubstr("'1'"), HasSubstr("2 to 32768")));
  EXPECT_THAT(verdict([](Config& c) { c.device.gid_index = -2; }), HasSubstr("device.gid_index"));
  EXPECT_THAT(verdict([](Config& c) { c.device.hop_limit = 1; }), HasSubstr("device.hop_limit"));
  EXPECT_THAT(verdict([](Config& c) { c.device.service_level = 16; }), HasSubstr("device.service_level"));
  EXPECT_THAT(verdict([](Config& c) { c.device.flow_label = 1 << 20; }), HasSubstr("device.flow_label"));
  EXPECT_THAT(verdict([](Config& c) { c.eager.max_bytes = 63; }), HasSubstr("eager.max_bytes"));
  EXPECT_THAT(verdict([](Config& c) { c.rc.rnr_timer = 0ns; }), HasSubstr("rc.rnr_timer"));
  EXPECT_THAT(verdict([](Config& c) { c.rc.ack_timeout = -1ns; }), HasSubstr("rc.ack_timeout"));
  EXPECT_THAT(verdict([](Config& c) { c.worker.wait = static_cast<WaitMode>(9); }), HasSubstr("worker.wait"));
  EXPECT_THAT(verdict([](Config& c) { c.device.name = ""; }), HasSubstr("device.name"));
}

TEST(ConfigCheck, RefusesKeysOfNoPartitionAndSizesThatNoPacketHas) {
  EXPECT_THAT(verdict([](Config& c) { c.device.pkey = 0x8000; }), AllOf(HasSubstr("device.pkey"), HasSubstr("0x8000")));
  EXPECT_EQ(verdict([](Config& c) { c.device.pkey = 0x7fff; }), "fits");
  EXPECT_THAT(verdict([](Config& c) { c.device.mtu_bytes = 1500; }),
              AllOf(HasSubstr("device.mtu_bytes is 1500"), HasSubstr("256, 512, 1024, 2048 and 4096")));
  for (const std::uint32_t bytes : {256, 512, 1024, 2048, 4096}) {
    EXPECT_EQ(verdict([&](Config& c) { c.device.mtu_bytes = bytes; }), "fits");
  }
}

TEST(ConfigCheck, KeepsQueuesWithinWhatDevicesHaveWithTheirControlSlots) {
  EXPECT_EQ(verdict([](Config& c) { c.rc.receive_depth = most_queue_entries - c.rc.control_slots - 1; }), "fits");
  EXPECT_THAT(verdict([](Config& c) { c.rc.receive_depth = most_queue_entries - c.rc.control_slots; }),
              AllOf(HasSubstr("rc.receive_depth is 32760"), HasSubstr("rc.control_slots 8"), HasSubstr("32769"),
                    HasSubstr("32768")));
  EXPECT_THAT(verdict([](Config& c) { c.rc.send_depth = most_queue_entries; }), HasSubstr("rc.send_depth is 32768"));
  EXPECT_THAT(verdict([](Config& c) { c.rc.pool_initial = c.rc.pool_max + 1; }),
              AllOf(HasSubstr("rc.pool_initial is 1025"), HasSubstr("rc.pool_max 1024")));
}

TEST(ConfigCheck, RefillsBothQueuesBeforeTheyRunDry) {
  EXPECT_EQ(verdict([](Config& c) { c.rc.signal_interval = 64; }), "fits");
  EXPECT_THAT(verdict([](Config& c) { c.rc.signal_interval = 65; }),
              AllOf(HasSubstr("rc.signal_interval is 65"), HasSubstr("rc.send_depth, which is 256")));
  EXPECT_EQ(verdict([](Config& c) { c.rc.repost_batch = 64; }), "fits");
  EXPECT_THAT(verdict([](Config& c) {
                c.rc.receive_depth = 126;
                c.rc.repost_batch = 64;
              }),
              AllOf(HasSubstr("rc.repost_batch is 64"), HasSubstr("rc.receive_depth, which is 126")));
  EXPECT_THAT(verdict([](Config& c) {
                c.rc.receive_depth = 4096;
                c.rc.repost_batch = 65;
              }),
              AllOf(HasSubstr("repost_batch"), HasSubstr("65"), HasSubstr("1 to 64")));
}

TEST(ConfigCheck, WantsRingsThatHoldTheLargestMessages) {
  const auto polling = [](const auto& change) {
    return verdict([&](Config& c) {
      c.worker.wait = WaitMode::poll;
      change(c);
    });
  };
  EXPECT_THAT(polling([](Config& c) { c.write_queue.bytes = 96 * 1024; }),
              AllOf(HasSubstr("write_queue.bytes is 96KiB"), HasSubstr("power of two"), HasSubstr("128KiB")));
  // 8 records of 8192 + 128 bytes are a little more than 64 KiB.
  EXPECT_THAT(polling([](Config& c) { c.write_queue.bytes = 64 * 1024; }),
              AllOf(HasSubstr("write_queue.bytes is 64KiB"), HasSubstr("eager.max_bytes 8KiB"), HasSubstr("65KiB"),
                    HasSubstr("to 128KiB")));
  EXPECT_EQ(polling([](Config& c) { c.eager.max_bytes = 16 * 1024 - 128; }), "fits");
  EXPECT_THAT(polling([](Config& c) { c.eager.max_bytes = 16 * 1024 - 127; }), HasSubstr("eager.max_bytes 16257"));
  EXPECT_EQ(polling([](Config& c) {
              c.write_queue.bytes = 5000;
              c.write_queue.enabled = Switch::off;
            }),
            "fits");
  // Who sleeps has no rings.
  EXPECT_EQ(verdict([](Config& c) { c.eager.max_bytes = 64 * 1024; }), "fits");
}

TEST(ConfigCheck, WantsRangesOfPortsThatGoUp) {
  const auto ports = [](std::uint16_t first, std::uint16_t last) {
    return verdict([&](Config& c) {
      c.bootstrap.port_first = first;
      c.bootstrap.port_last = last;
    });
  };
  EXPECT_EQ(ports(0, 0), "fits");
  EXPECT_EQ(ports(5000, 0), "fits");
  EXPECT_EQ(ports(5000, 5000), "fits");
  EXPECT_THAT(ports(5000, 4999), AllOf(HasSubstr("bootstrap.port_last is 4999"), HasSubstr("port_first 5000")));
  EXPECT_THAT(ports(0, 5000), HasSubstr("not 0"));
}

TEST(ConfigCheck, QuestionsRetriesForEverAndLongSilences) {
  Config config;
  config.rc.rnr_retry_count = 7;
  EXPECT_THAT(doubts(config), ElementsAre(AllOf(HasSubstr("rc.rnr_retry_count is 7"), HasSubstr("for ever"))));
  config = {};
  config.rc.ack_timeout = 2s;
  EXPECT_THAT(doubts(config),
              ElementsAre(AllOf(HasSubstr("rc.ack_timeout 2s"), HasSubstr("16s"), HasSubstr("10s is a long time"))));
  config.rc.retry_count = 4;
  EXPECT_THAT(doubts(config), IsEmpty()) << "just as long is not longer";
  config = {};
  config.rc.rnr_timer = 492ms;
  EXPECT_THAT(doubts(config), ElementsAre(AllOf(HasSubstr("rc.rnr_timer is 492ms"), HasSubstr("655.36ms"))));
  EXPECT_NO_THROW(check(config));
}

// Base knows no codes of devices, so what its ranges and doubts say of them is held against the floor that does.
TEST(ConfigCheck, AgreesWithTheCodesOfDevices) {
  const Range ack = find_knob("rc", "ack_timeout")->range;
  EXPECT_EQ(qp::AckTimeout(Duration(ack.least)).code(), 1);
  EXPECT_NO_THROW(qp::AckTimeout{Duration(ack.most)});
  const Range rnr = find_knob("rc", "rnr_timer")->range;
  EXPECT_EQ(qp::RnrTimer(Duration(rnr.least)).code(), 1);
  EXPECT_EQ(qp::RnrTimer(Duration(rnr.most)).code(), 0);
  Config config;
  for (const Duration timer : {491520us, 491521us}) {
    config.rc.rnr_timer = timer;
    EXPECT_EQ(doubts(config).empty(), qp::RnrTimer(timer).code() != 0);
  }
}

}  // namespace
}  // namespace verbatim::config
