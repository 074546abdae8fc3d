#include "verbatim-info/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/device/descriptions.hpp"

namespace verbatim::info {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Report sample() {
  Report report;
  auto device = device::device("mlx5_0", {device::usual_port(1)});
  device.node_guid = 0x0002c90300a1b2c3;
  device.placement = {1, {2, 3}};
  device.limits.max_qp = 4711;
  device.mlx5 = device::Mlx5Capabilities{};
  device.mlx5->lag_ports = 2;
  device.ports[0].pkeys = {{0, 0xffff}};
  report.inventory.devices = {device};
  report.inventory.skipped = {{"mlx5_1", "Permission denied"}};
  report.choice = select(report.inventory, {});
  report.numa_nodes = {{0, 1u << 30, 2, {0, 1}, {1}}};
  report.host.memlock_bytes = 65536;
  report.host.huge_pages = {{2u << 20, 10, 4}};
  report.registration_cache_problem = "the kernel refuses userfaultfd: Operation not permitted";
  return report;
}

TEST(Text, HasTheChoiceFirstAndSaysWhy) {
  const auto text = to_text(sample());
  EXPECT_TRUE(text.starts_with("Choice\n  device                     mlx5_0\n  port                       1\n"))
      << text;
  EXPECT_THAT(text, AllOf(HasSubstr("first RDMA port that is active\n"), HasSubstr("1: ::ffff:10.0.0.1\n"),
                          HasSubstr("RoCE v2 with a routable IPv4 address, best of 2 entries\n")));
}

TEST(Text, HasEveryPart) {
  const auto text = to_text(sample());
  EXPECT_THAT(text, HasSubstr("Device mlx5_0\n"));
  EXPECT_THAT(text, HasSubstr("0002:c903:00a1:b2c3"));
  EXPECT_THAT(text, HasSubstr("1, CPUs 2-3\n"));
  EXPECT_THAT(text, HasSubstr("max_qp                     4711\n"));
  EXPECT_THAT(text, HasSubstr("lag_ports                  2\n"));
  EXPECT_THAT(text, HasSubstr("0xffff\n"));
  EXPECT_THAT(text, HasSubstr("off: the kernel refuses userfaultfd: Operation not permitted\n"));
  EXPECT_THAT(text, HasSubstr("mlx5_1                     Permission denied\n"));
  EXPECT_THAT(text, HasSubstr("1 GiB, 2 cores, CPUs 0-1, allowed 1\n"));
  EXPECT_THAT(text, HasSubstr("64 KiB may be locked, unlimited when raised\n"));
  EXPECT_THAT(text, HasSubstr("huge pages 2MiB            4 free of 10\n"));
}

TEST(Text, SaysWhyThereIsNoChoice) {
  Report report;
  report.refusal = "no device is usable; found: none";
  EXPECT_TRUE(to_text(report).starts_with("Choice\n  none                       no device is usable; found: none\n"));
}

TEST(Text, KeepsLabelsApartFromValues) {
  auto report = sample();
  report.inventory.skipped = {{"a_name_longer_than_the_column", "reason"}};
  EXPECT_THAT(to_text(report), HasSubstr("a_name_longer_than_the_column reason\n"));
}

TEST(JsonReport, HasTheChoiceAndTheFacts) {
  const auto json = nlohmann::json::parse(to_json(sample()));
  EXPECT_EQ(json["choice"]["device"], "mlx5_0");
  EXPECT_EQ(json["choice"]["port"], 1);
  EXPECT_EQ(json["choice"]["gid"]["index"], 1);
  EXPECT_EQ(json["choice"]["gid"]["gid"], "::ffff:10.0.0.1");
  EXPECT_TRUE(json["refusal"].is_null());
  const auto& device = json["devices"][0];
  EXPECT_EQ(device["limits"]["max_qp"], 4711);
  EXPECT_EQ(device["numa_node"], 1);
  EXPECT_EQ(device["ports"][0]["gids"].size(), 2u);
  EXPECT_EQ(device["ports"][0]["pkeys"][0]["value"], 0xffff);
  EXPECT_EQ(device["mlx5"]["lag_ports"], 2);
  EXPECT_EQ(json["skipped"][0]["name"], "mlx5_1");
  EXPECT_EQ(json["host"]["memlock"], 65536);
  EXPECT_EQ(json["host"]["registration_cache"], false);
  EXPECT_EQ(json["host"]["registration_cache_problem"], "the kernel refuses userfaultfd: Operation not permitted");
  EXPECT_TRUE(json["host"]["memlock_max"].is_null());
  EXPECT_TRUE(json["host"]["dev_shm"].is_null());
}

TEST(JsonReport, IsValidWhateverAReasonContains) {
  auto report = sample();
  report.choice.reset();
  report.refusal = "a \"quoted\" name\nand a byte \xff";
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_TRUE(json["choice"].is_null());
  EXPECT_EQ(json["refusal"], "a \"quoted\" name\nand a byte \ufffd");
}

}  // namespace
}  // namespace verbatim::info
