#include "device/selection.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "unit/device/descriptions.hpp"

namespace verbatim::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto v1 = GidType::roce_v1;
constexpr auto v2 = GidType::roce_v2;

std::uint32_t chosen_index(const std::vector<std::pair<std::string, GidType>>& table) {
  return choose_gid("mlx5_0", ethernet_port(1, PortState::active, gid_table(table)), std::nullopt).entry.index;
}

// The sentence of the error that `action` throws; its code must be `code`.
template <typename Action>
std::string refusal(ErrorCode code, Action action) {
  try {
    (void)action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

std::string select_refusal(const Inventory& inventory, std::string_view device,
                           std::optional<std::uint32_t> gid_index = std::nullopt) {
  return refusal(ErrorCode::not_found, [&] { return select(inventory, parse_selection_rule(device, gid_index)); });
}

TEST(GidChoice, TakesRoutableRoceV2First) {
  EXPECT_EQ(chosen_index({{"fe80::1", v1}, {"fe80::1", v2}, {"::ffff:10.0.0.1", v1}, {"::ffff:10.0.0.1", v2}}), 3u);
  EXPECT_EQ(chosen_index({{"fe80::1", v2}, {"::ffff:10.0.0.1", v2}}), 1u);
  EXPECT_EQ(chosen_index({{"::ffff:10.0.0.1", v2}, {"fe80::1", v2}}), 0u);
}

TEST(GidChoice, WorksWhereThereIsOnlyIpv6) {
  EXPECT_EQ(chosen_index({{"fe80::1", v1}, {"fe80::1", v2}, {"2001:db8::1", v1}, {"2001:db8::1", v2}}), 3u);
  EXPECT_EQ(chosen_index({{"fe80::1", v1}, {"fe80::1", v2}}), 1u);
}

TEST(GidChoice, TakesTheSameFamilyWhateverTheOrderOfTheTable) {
  EXPECT_EQ(chosen_index({{"2001:db8::1", v2}, {"::ffff:10.0.0.1", v2}}), 1u);
  EXPECT_EQ(chosen_index({{"::ffff:10.0.0.1", v2}, {"2001:db8::1", v2}}), 0u);
}

TEST(GidChoice, TakesLinkLocalOnlyWhenNothingIsRoutable) {
  EXPECT_EQ(chosen_index({{"fe80::1", v2}, {"::ffff:10.0.0.1", v1}}), 1u);
  EXPECT_EQ(chosen_index({{"::ffff:169.254.0.1", v2}, {"2001:db8::1", v2}}), 1u);
  EXPECT_EQ(chosen_index({{"::1", v2}, {"fe80::1", v1}}), 1u);
}

TEST(GidChoice, TakesTheLowestIndexOfEqualOnes) {
  EXPECT_EQ(chosen_index({{"fe80::1", v2}, {"::ffff:10.0.0.9", v2}, {"::ffff:10.0.0.1", v2}}), 1u);
}

TEST(GidChoice, SaysWhy) {
  const auto port = ethernet_port(1, PortState::active, gid_table({{"fe80::1", v2}, {"::ffff:10.0.0.1", v2}}));
  EXPECT_EQ(choose_gid("mlx5_0", port, std::nullopt).reason, "RoCE v2 with a routable IPv4 address, best of 2 entries");
  EXPECT_EQ(choose_gid("mlx5_0", port, 0).reason, "index asked for");
  const auto local = ethernet_port(1, PortState::active, gid_table({{"fe80::1", v2}}));
  EXPECT_THAT(choose_gid("mlx5_0", local, std::nullopt).reason, HasSubstr("no host beyond the link is reached"));
}

TEST(GidChoice, TakesAnIndexThatIsAskedForAsItIs) {
  EXPECT_EQ(choose_gid("mlx5_0", usual_port(1), 0).entry.gid, gid("fe80::1"));
}

TEST(GidChoice, RefusesAnIndexBeyondTheTable) {
  const auto table = gid_table({{"fe80::1", v1}, {"fe80::1", v2}, {"::ffff:10.0.0.1", v1}, {"::ffff:10.0.0.1", v2}});
  const auto port = ethernet_port(2, PortState::active, table);
  EXPECT_EQ(refusal(ErrorCode::not_found, [&] { return choose_gid("mlx5_0", port, 9); }),
            "GID index 9 of mlx5_0 port 2 is beyond the table of 4; usable: 0 (RoCE v1 fe80::1), 1 (RoCE v2 fe80::1), "
            "2 (RoCE v1 ::ffff:10.0.0.1), 3 (RoCE v2 ::ffff:10.0.0.1)");
}

TEST(GidChoice, RefusesAnEmptyIndex) {
  auto port = usual_port(1);
  port.gid_table_length = 16;
  EXPECT_THAT(refusal(ErrorCode::not_found, [&] { return choose_gid("mlx5_0", port, 5); }),
              AllOf(HasSubstr("GID index 5 of mlx5_0 port 1 is empty"), HasSubstr("1 (RoCE v2 ::ffff:10.0.0.1)")));
}

TEST(GidChoice, IsIndexZeroOnInfiniBand) {
  EXPECT_EQ(choose_gid("mlx5_0", infiniband_port(1, PortState::active), std::nullopt).entry.index, 0u);
}

TEST(DeviceChoice, TakesTheFirstActiveRdmaPort) {
  const Inventory inventory{{device("mlx5_0", {usual_port(1, PortState::down), usual_port(2, PortState::initialize)}),
                             device("mlx5_1", {usual_port(1, PortState::down), usual_port(2)}),
                             device("soft0", {usual_port(1)}, ProviderKind::soft)},
                            {}};
  const auto selection = select(inventory, parse_selection_rule("auto"));
  EXPECT_EQ(selection.device, "mlx5_1");
  EXPECT_EQ(selection.provider, ProviderKind::ibverbs);
  EXPECT_EQ(selection.port, PortNumber{2});
  EXPECT_EQ(selection.gid.entry.index, 1u);
  EXPECT_EQ(selection.reason, "first RDMA port that is active");
}

TEST(DeviceChoice, PrefersRdmaWhereverTheSoftDeviceStands) {
  const Inventory inventory{{device("soft0", {usual_port(1)}, ProviderKind::soft), device("mlx5_0", {usual_port(1)})},
                            {}};
  EXPECT_EQ(select(inventory, parse_selection_rule("auto")).device, "mlx5_0");
}

TEST(DeviceChoice, FallsBackToTheSoftDeviceAndSaysWhy) {
  const Inventory inventory{
      {device("mlx5_0", {usual_port(1, PortState::down)}), device("mlx5_1", {ethernet_port(1, PortState::active, {})}),
       device("soft0", {usual_port(1)}, ProviderKind::soft)},
      {{"mlx5_2", "no such file"}}};
  const auto selection = select(inventory, parse_selection_rule("auto"));
  EXPECT_EQ(selection.device, "soft0");
  EXPECT_EQ(selection.provider, ProviderKind::soft);
  EXPECT_EQ(
      selection.reason,
      "no RDMA port is active (found: mlx5_0:1 is down, mlx5_1:1 has no GID, mlx5_2 can't be used (no such file)), "
      "so the soft device");
}

TEST(DeviceChoice, FailsWhenNothingIsUsable) {
  const Inventory unopenable{{}, {{"mlx5_0", "Permission denied"}, {"mlx5_1", "no such file"}}};
  EXPECT_EQ(
      select_refusal(unopenable, "auto"),
      "no device is usable; found: mlx5_0 can't be used (Permission denied), mlx5_1 can't be used (no such file)");
  EXPECT_EQ(select_refusal({}, "auto"), "no device is usable; found: none");
}

TEST(DeviceChoice, UsesTheOthersWhenOneIsUnopenable) {
  const Inventory inventory{{device("mlx5_1", {usual_port(1)})}, {{"mlx5_0", "no such file"}}};
  EXPECT_EQ(select(inventory, parse_selection_rule("auto")).device, "mlx5_1");
}

TEST(DeviceChoice, MatchesNamesExactly) {
  const Inventory inventory{{device("mlx5_10", {usual_port(1)}), device("mlx5_1", {usual_port(1), usual_port(2)})}, {}};
  EXPECT_EQ(select(inventory, parse_selection_rule("mlx5_1")).device, "mlx5_1");
  EXPECT_EQ(select(inventory, parse_selection_rule("mlx5_10")).device, "mlx5_10");
  EXPECT_EQ(select(inventory, parse_selection_rule("mlx5_1:2")).port, PortNumber{2});
  EXPECT_EQ(select_refusal(inventory, "mlx5"),
            "there is no device 'mlx5'; found: mlx5_10:1 is usable, mlx5_1:1 is usable, mlx5_1:2 is usable");
  EXPECT_THAT(select_refusal(inventory, "mlx5_1 "), HasSubstr("there is no device 'mlx5_1 '"));
  EXPECT_THAT(select_refusal(inventory, "MLX5_1"), HasSubstr("there is no device 'MLX5_1'"));
}

TEST(DeviceChoice, NamesThePortsThereAre) {
  const Inventory inventory{{device("mlx5_0", {usual_port(1, PortState::down), usual_port(2)})}, {}};
  EXPECT_EQ(select_refusal(inventory, "mlx5_0:3"),
            "device 'mlx5_0' has no port 3; found: mlx5_0:1 is down, mlx5_0:2 is usable");
  EXPECT_EQ(select_refusal(inventory, "mlx5_0:1"),
            "port 1 of device 'mlx5_0' is down; found: mlx5_0:1 is down, mlx5_0:2 is usable");
}

TEST(DeviceChoice, TakesTheFirstActivePortOfANamedDevice) {
  const Inventory inventory{
      {device("mlx5_0", {usual_port(1)}), device("mlx5_1", {usual_port(1, PortState::down), usual_port(2)})}, {}};
  const auto selection = select(inventory, parse_selection_rule("mlx5_1"));
  EXPECT_EQ(selection.port, PortNumber{2});
  EXPECT_EQ(selection.reason, "device asked for, its first active port");
}

TEST(DeviceChoice, SaysWhyANamedDeviceCannotBeUsed) {
  const Inventory inventory{{device("mlx5_0", {usual_port(1, PortState::down)})}, {{"mlx5_1", "Permission denied"}}};
  EXPECT_EQ(select_refusal(inventory, "mlx5_0"), "device 'mlx5_0' has no usable port; found: mlx5_0:1 is down");
  EXPECT_EQ(select_refusal(inventory, "mlx5_1"), "device 'mlx5_1' can't be used: Permission denied");
}

TEST(DeviceChoice, ChecksTheGidIndexOfTheChosenPort) {
  const Inventory inventory{{device("mlx5_0", {usual_port(1)})}, {}};
  EXPECT_EQ(select(inventory, parse_selection_rule("auto", 0)).gid.entry.index, 0u);
  EXPECT_THAT(select_refusal(inventory, "auto", 9), HasSubstr("GID index 9 of mlx5_0 port 1"));
}

TEST(SelectionRule, HasThreeForms) {
  EXPECT_FALSE(parse_selection_rule("auto").device);
  EXPECT_EQ(parse_selection_rule("mlx5_0").device, "mlx5_0");
  EXPECT_FALSE(parse_selection_rule("mlx5_0").port);
  EXPECT_EQ(parse_selection_rule("mlx5_0:255").port, PortNumber{255});
  for (const auto* text : {"", ":1", "mlx5_0:", "mlx5_0:0", "mlx5_0:256", "mlx5_0:x", "mlx5_0:1 ", "mlx5_0:-1",
                           "mlx5_0:0x1", "mlx5_0:1:1", "auto:1"}) {
    EXPECT_THAT(refusal(ErrorCode::invalid_argument, [&] { return parse_selection_rule(text); }),
                AllOf(HasSubstr(fmt::format("'{}'", text)), HasSubstr("NAME:PORT")))
        << text;
  }
}

}  // namespace
}  // namespace verbatim::device
