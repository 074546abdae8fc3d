// Every knob of the soft device: one row each. The parser, conf/soft.toml and the names in the environment come from
// here; a knob's default is what config.hpp and fault_plan.hpp give its member.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "device/soft/config.hpp"
#include "device/soft/settings/value.hpp"

namespace verbatim::soft {

// `Members` are the kinds of member that a knob of this group may set.
template <typename... Members>
struct Row {
  std::string_view table;  // within [soft]; empty: [soft] itself
  std::string_view name;
  std::variant<Members...> member;
  Range range;  // of numbers; of texts, their length
  Unit unit;
  std::string_view sentence;
};

using DeviceRow = Row<std::string DeviceConfig::*, std::uint32_t DeviceConfig::*, std::uint64_t DeviceConfig::*,
                      bool DeviceConfig::*, std::uint32_t Limits::*, std::uint64_t Limits::*, bool FaultPlan::*,
                      std::uint32_t FaultPlan::*, std::uint64_t FaultPlan::*>;
using PortRow = Row<ibv_mtu PortConfig::*, bool PortConfig::*>;
using RuleRow = Row<PacketFault PacketRule::*, PacketClass PacketRule::*, std::uint32_t PacketRule::*,
                    std::uint64_t PacketRule::*, double PacketRule::*, Duration PacketRule::*>;

[[nodiscard]] std::span<const DeviceRow> device_rows();
[[nodiscard]] std::span<const PortRow> port_rows();
[[nodiscard]] std::span<const RuleRow> rule_rows();

inline constexpr std::string_view limits_table = "limits";
inline constexpr std::string_view quirks_table = "quirks";
inline constexpr std::string_view ports_table = "ports";
inline constexpr std::string_view faults_table = "faults";

inline constexpr std::uint64_t most_ports = 255;  // ports are numbered in 8 bits
inline constexpr std::uint64_t most_gids = 256;   // an address vector's index has 8 bits
inline constexpr std::uint64_t most_pkeys = 256;
inline constexpr std::uint64_t most_packet_rules = 256;

// Sets the row's member. Throws as the readers of value.hpp.
void set(DeviceConfig& config, const DeviceRow& row, const Value& value);
void set(PortConfig& port, const PortRow& row, const Value& value);
void set(PacketRule& rule, const RuleRow& row, const Value& value);

// The member as TOML writes it: 64, "64KiB", true.
[[nodiscard]] std::string show(const DeviceConfig& config, const DeviceRow& row);
[[nodiscard]] std::string show(const PortConfig& port, const PortRow& row);
[[nodiscard]] std::string show(const PacketRule& rule, const RuleRow& row);

// What is allowed, in words: "1 to 16384", "drop, duplicate, …".
[[nodiscard]] std::string allowed(const DeviceRow& row);
[[nodiscard]] std::string allowed(const PortRow& row);
[[nodiscard]] std::string allowed(const RuleRow& row);

}  // namespace verbatim::soft
