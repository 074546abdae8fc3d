// What users set arrives in the device's configuration, or is refused with place, name, value and what is allowed.
#include "device/soft/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/gid.hpp"
#include "device/system.hpp"

namespace verbatim::soft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Settings : public ::testing::Test {
 protected:
  ~Settings() override { ::unlink(path.c_str()); }

  DeviceConfig read(const std::string& toml, Environment environment = {}) {
    if (!toml.empty()) {
      std::ofstream(path) << toml;
      environment.emplace("VERBATIM_SOFT_CONFIG", path);
    }
    warnings.clear();
    return read_settings(environment, [&](const std::string& sentence) { warnings.push_back(sentence); });
  }
  std::string refusal(const std::string& toml, const Environment& environment = {}) {
    try {
      (void)read(toml, environment);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "not refused";
  }

  const std::string path = ::testing::TempDir() + "verbatim-settings-" + std::to_string(::getpid()) + ".toml";
  std::vector<std::string> warnings;
};

std::string text_of(const GidConfig& entry) {
  device::Gid gid;
  std::copy(std::begin(entry.gid.raw), std::end(entry.gid.raw), gid.bytes.begin());
  return device::to_string(gid) + (entry.type == IBV_GID_TYPE_ROCE_V1 ? " v1" : " v2");
}

std::vector<std::string> texts_of(const std::vector<GidConfig>& gids) {
  std::vector<std::string> texts;
  for (const GidConfig& entry : gids) texts.push_back(text_of(entry));
  return texts;
}

TEST_F(Settings, AreTheDefaultsWhereNothingIsSet) {
  const DeviceConfig config = read("", {{"PATH", "/bin"}, {"VERBATIM_LOG", "info"}});
  EXPECT_EQ(config.name, "soft0");
  EXPECT_EQ(config.limits.max_qp, Limits{}.max_qp);
  EXPECT_EQ(config.ports.size(), 1U);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(Settings, TakeEnvironmentBeforeFileBeforeDefault) {
  const DeviceConfig config = read(
      "[soft]\nring_bytes = '64KiB'\nfirst_qpn = 0x20\n[soft.limits]\nmax_qp = 8\nmax_cqe = 64\n"
      "max_msg_bytes = '64KiB'\nmax_pinned_bytes = 'unlimited'\n[soft.quirks]\nrefuse_reset = true\n",
      {{"VERBATIM_SOFT_MAX_QP", " 0x10 "}, {"VERBATIM_SOFT_PAYLOAD_BY_REFERENCE", "false"}});
  EXPECT_EQ(config.limits.max_qp, 16U);
  EXPECT_EQ(config.limits.max_cqe, 64U);
  EXPECT_EQ(config.limits.max_cq, Limits{}.max_cq);
  EXPECT_EQ(config.limits.max_msg_bytes, 65536U);
  EXPECT_EQ(config.limits.max_pinned_bytes, UINT64_MAX);
  EXPECT_EQ(config.ring_bytes, 65536U);
  EXPECT_EQ(config.first_qpn, 0x20U);
  EXPECT_TRUE(config.faults.refuse_reset);
  EXPECT_FALSE(config.payload_by_reference);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(Settings, ReadPortsWithTheirTables) {
  const DeviceConfig config = read(
      "[[soft.ports]]\ngids = ['fe80::1 RoCE v1', 'fe80::1', '10.0.0.1 RoCE v1', '10.0.0.1 RoCE v2', '::']\n"
      "pkeys = [0xffff, 0x8001, 0]\nactive_mtu = 1024\n\r\n[[soft.ports]]\r\nstate = 'down'\r\nmax_mtu = 2048\r\n"
      "active_mtu = 2048\r\n");
  ASSERT_EQ(config.ports.size(), 2U);
  EXPECT_THAT(texts_of(config.ports[0].gids),
              ElementsAre("fe80::1 v1", "fe80::1 v2", "::ffff:10.0.0.1 v1", "::ffff:10.0.0.1 v2", ":: v2"));
  EXPECT_THAT(config.ports[0].pkeys, ElementsAre(0xffff, 0x8001, 0));
  EXPECT_EQ(config.ports[0].active_mtu, IBV_MTU_1024);
  EXPECT_EQ(config.ports[0].max_mtu, IBV_MTU_4096);
  EXPECT_TRUE(config.ports[0].active);
  EXPECT_FALSE(config.ports[1].active);
  EXPECT_EQ(config.ports[1].max_mtu, IBV_MTU_2048);
}

TEST_F(Settings, ReadPortsFromTheEnvironment) {
  const DeviceConfig config =
      read("[[soft.ports]]\n[[soft.ports]]\n", {{"VERBATIM_SOFT_GIDS", "10.0.0.1, fe80::1 RoCE v1"},
                                                {"VERBATIM_SOFT_PKEYS", "0x8001"},
                                                {"VERBATIM_SOFT_ACTIVE_MTU", "512"}});
  EXPECT_THAT(texts_of(config.ports[0].gids), ElementsAre("::ffff:10.0.0.1 v2", "fe80::1 v1"));
  EXPECT_THAT(config.ports[0].pkeys, ElementsAre(0x8001));
  EXPECT_THAT(config.ports[1].gids, IsEmpty());
  for (const PortConfig& port : config.ports) EXPECT_EQ(port.active_mtu, IBV_MTU_512);
}

TEST_F(Settings, ReadPacketRules) {
  const DeviceConfig config = read(
      "[soft]\nfaults = [{fault = 'drop', packets = 'acknowledge', rate = 0.01, qpn = 17, limit = 10},\n"
      "  {fault = 'reorder', nth = 3, delay = '10ms'}]\n");
  ASSERT_EQ(config.faults.packets.size(), 2U);
  const PacketRule& first = config.faults.packets[0];
  EXPECT_EQ(first.fault, PacketFault::drop);
  EXPECT_EQ(first.packets, PacketClass::acknowledge);
  EXPECT_DOUBLE_EQ(first.rate, 0.01);
  EXPECT_EQ(first.qpn, 17U);
  EXPECT_EQ(first.limit, 10U);
  const PacketRule& second = config.faults.packets[1];
  EXPECT_EQ(second.fault, PacketFault::reorder);
  EXPECT_EQ(second.nth, 3U);
  EXPECT_EQ(second.limit, UINT64_MAX);
  EXPECT_EQ(second.delay, std::chrono::milliseconds(10));
}

TEST_F(Settings, TakePacketRulesOfTheEnvironmentInsteadOfTheFiles) {
  const DeviceConfig config = read("[soft]\nfaults = [{fault = 'corrupt', rate = 1}]\n",
                                   {{"VERBATIM_SOFT_FAULTS", "drop:rate=0.01; delay:rate=0.1,delay=10us"}});
  ASSERT_EQ(config.faults.packets.size(), 2U);
  EXPECT_EQ(config.faults.packets[0].fault, PacketFault::drop);
  EXPECT_DOUBLE_EQ(config.faults.packets[0].rate, 0.01);
  EXPECT_EQ(config.faults.packets[1].fault, PacketFault::delay);
  EXPECT_EQ(config.faults.packets[1].delay, std::chrono::microseconds(10));
}

TEST_F(Settings, WarnOfNamesThatNobodyKnowsWithPlaceAndNearest) {
  const DeviceConfig config = read(
      "[soft]\nring_byte = '64KiB'\n[soft.limits]\nmax_qqp = 8\n[[soft.ports]]\ngid = []\n[soft.limit]\nmax_qp = 8\n",
      {{"VERBATIM_SOFT_MAX_QPS", "8"}});
  EXPECT_THAT(warnings, ::testing::UnorderedElementsAre(
                            AllOf(HasSubstr(path + ":2"), HasSubstr("'ring_byte'"), HasSubstr("'ring_bytes'")),
                            AllOf(HasSubstr(path + ":4"), HasSubstr("'max_qqp'"), HasSubstr("'max_qp'")),
                            AllOf(HasSubstr(path + ":6"), HasSubstr("'gid'"), HasSubstr("'gids'")),
                            AllOf(HasSubstr(path + ":7"), HasSubstr("'limit'"), HasSubstr("'limits'")),
                            AllOf(HasSubstr("environment"), HasSubstr("'VERBATIM_SOFT_MAX_QPS'"),
                                  HasSubstr("'VERBATIM_SOFT_MAX_QP'"))));
  EXPECT_EQ(config.limits.max_qp, Limits{}.max_qp);
}

TEST_F(Settings, WarnWhereTheTableItselfIsMisspelt) {
  (void)read("[sofd]\nname = 'x'\n");
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr(path + ":1"), HasSubstr("'sofd'"), HasSubstr("'soft'"))));
}

struct Refusal {
  const char* toml;
  std::vector<std::string> says;
};

TEST_F(Settings, RefuseInTheFileWithLineNameValueAndRange) {
  const std::vector<Refusal> refusals = {
      {"[soft.limits]\nmax_qp = 0\n", {":2", "max_qp", "'0'", "1 to 1048576"}},
      {"[soft.limits]\nmax_sge = 65\n", {":2", "max_sge", "'65'", "1 to 64"}},
      {"[soft.limits]\nmax_qp = -1\n", {"max_qp", "'-1'"}},
      {"[soft.limits]\nmax_qp = 4294967297\n", {"max_qp", "'4294967297'", "1 to 1048576"}},
      {"[soft.limits]\nmax_qp = '1k'\n", {"max_qp", "'1k'", "without a unit"}},
      {"[soft.limits]\nmax_qp = 1.5\n", {"max_qp", "'1.5'"}},
      {"[soft.limits]\nmax_qp = true\n", {"max_qp", "'true'"}},
      {"[soft.limits]\nmax_qp = [1]\n", {"max_qp", "one value"}},
      {"[soft.limits]\nmax_qp = 1\nmax_qp = 2\n", {":3", "max_qp"}},
      {"[soft]\nring_bytes = '1KiB'\n", {":2", "ring_bytes", "'1KiB'", "16KiB to 1GiB"}},
      {"[soft]\nring_bytes = '64QiB'\n", {"ring_bytes", "'64QiB'", "KiB"}},
      {"[soft]\nname = ''\n", {"name", "1 to 63 characters"}},
      {"[soft]\npayload_by_reference = 1\n", {"payload_by_reference", "'1'", "true, false"}},
      {"[[soft.ports]]\nactive_mtu = 1500\n", {":2", "active_mtu", "'1500'", "256, 512, 1024, 2048, 4096"}},
      {"[[soft.ports]]\nmax_mtu = 1024\n", {"port 1", "active_mtu is 4096", "1024"}},
      {"[[soft.ports]]\nstate = 'up'\n", {"state", "'up'", "active, down"}},
      {"[[soft.ports]]\ngids = ['10.0.0.300']\n", {"gids", "'10.0.0.300'", "10.0.0.1"}},
      {"[[soft.ports]]\ngids = ['10.0.0.3 RoCE v3']\n", {"gids", "RoCE v1 or RoCE v2"}},
      {"[[soft.ports]]\npkeys = [65536]\n", {"pkeys", "'65536'", "0 to 65535"}},
      {"[[soft.ports]]\npkeys = []\n", {"port 1", "P_Keys is 0"}},
      {"[soft]\nports = []\n", {"number of ports is 0"}},
      {"[soft]\nports = 2\n", {":2", "ports", "tables"}},
      {"[soft]\nfirst_qpn = 16777215\n", {"first_qpn 16777215", "max_qp"}},
      {"[soft]\nfaults = [{fault = 'lose', rate = 1}]\n", {":2", "fault", "'lose'", "drop, duplicate"}},
      {"[soft]\nfaults = [{fault = 'drop', rate = 1.5}]\n", {"rate", "'1.5'", "0 to 1"}},
      {"[soft]\nfaults = [{fault = 'drop'}]\n", {"faults", "rate or nth"}},
      {"[soft]\nfaults = [{fault = 'delay', rate = 1}]\n", {"faults", "delay"}},
      {"[soft]\nfaults = [{fault = 'delay', rate = 1, delay = 10}]\n", {"delay", "'10'", "us"}},
      {"[soft]\nname = \n", {":2"}},
  };
  for (const Refusal& wrong : refusals) {
    const std::string sentence = refusal(wrong.toml);
    for (const std::string& part : wrong.says) EXPECT_THAT(sentence, HasSubstr(part)) << wrong.toml;
  }
}

TEST_F(Settings, RefuseInTheEnvironmentWithNameValueAndRange) {
  const std::vector<std::pair<Environment, std::vector<std::string>>> refusals = {
      {{{"VERBATIM_SOFT_MAX_QP", ""}}, {"environment", "VERBATIM_SOFT_MAX_QP", "''", "1 to 1048576"}},
      {{{"VERBATIM_SOFT_MAX_QP", "1K"}}, {"'1K'"}},
      {{{"VERBATIM_SOFT_MAX_QP", "-1"}}, {"'-1'"}},
      {{{"VERBATIM_SOFT_MAX_QP", "8 9"}}, {"'8 9'"}},
      {{{"VERBATIM_SOFT_MAX_MSG_BYTES", "-1"}}, {"VERBATIM_SOFT_MAX_MSG_BYTES", "'-1'", "1 to 2GiB"}},
      {{{"VERBATIM_SOFT_GIDS", "10.0.0.1,,10.0.0.2"}}, {"VERBATIM_SOFT_GIDS", "''"}},
      {{{"VERBATIM_SOFT_FAULTS", "drop"}}, {"VERBATIM_SOFT_FAULTS", "rate or nth"}},
      {{{"VERBATIM_SOFT_FAULTS", "drop:rates=1"}}, {"VERBATIM_SOFT_FAULTS", "'drop:rates=1'", "rate"}},
      {{{"VERBATIM_SOFT_FAULTS", "drop:rate=2"}}, {"rate of VERBATIM_SOFT_FAULTS", "'2'"}},
  };
  for (const auto& [environment, says] : refusals) {
    const std::string sentence = refusal("", environment);
    for (const std::string& part : says) EXPECT_THAT(sentence, HasSubstr(part)) << environment.begin()->second;
  }
}

TEST_F(Settings, SayWhichFileIsMissing) {
  try {
    (void)read("", {{"VERBATIM_SOFT_CONFIG", "/nowhere/soft.toml"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/soft.toml"));
  }
}

TEST_F(Settings, ReachTheSystemOfThisHost) {
  const std::string directory = ::testing::TempDir() + "verbatim-settings-" + std::to_string(::getpid());
  ::setenv("VERBATIM_SOFT_NAME", "renamed", 1);
  ::setenv("VERBATIM_SOFT_DIRECTORY", directory.c_str(), 1);
  ::setenv("VERBATIM_SOFT_GIDS", "10.9.8.7 RoCE v1, 10.9.8.7 RoCE v2", 1);
  device::System system = device::System::of_this_host();
  for (const char* name : {"VERBATIM_SOFT_NAME", "VERBATIM_SOFT_DIRECTORY", "VERBATIM_SOFT_GIDS"}) ::unsetenv(name);
  const device::Selection selection = device::select(system.list(), device::parse_selection_rule("renamed"));
  EXPECT_EQ(selection.provider, device::ProviderKind::soft);
  EXPECT_EQ(selection.gid.entry.index, 1U) << "RoCE v2 before v1";
  auto context = system.open(selection);
  std::vector<ibv_gid_entry> entries;
  ASSERT_EQ(context->query_gid_table(entries), 0);
  EXPECT_EQ(entries.size(), 2U);
  context.reset();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace verbatim::soft
