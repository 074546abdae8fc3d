#include "device/soft/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "device/soft/engine/pieces.hpp"
#include "device/soft/engine/port.hpp"

namespace verbatim::soft {
namespace {

constexpr std::size_t max_ports = 255;          // verbs numbers ports in 8 bits
constexpr std::size_t max_table_entries = 256;  // and indexes GIDs in 8

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, "soft device: " + sentence);
}

void expect(std::string_view what, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value < least || value > most) refuse(fmt::format("{} is {}; {} to {} is allowed", what, value, least, most));
}

// ':' would be taken for a port, "auto" for a wish.
void expect_name(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char character) {
    return std::isalnum(character) != 0 || character == '_' || character == '-' || character == '.';
  });
  if (plain && !name.empty() && name.size() < IBV_SYSFS_NAME_MAX && name != "auto") return;
  refuse(fmt::format("name '{}' can't be chosen; 1 to {} letters, digits, '_', '-' and '.' can, but not 'auto'", name,
                     IBV_SYSFS_NAME_MAX - 1));
}

void check_port(const PortConfig& port, std::size_t number) {
  const auto of_port = [&](std::string_view what) { return fmt::format("port {}: {}", number, what); };
  expect(of_port("number of GIDs"), port.gids.size(), 0, max_table_entries);
  expect(of_port("number of P_Keys"), port.pkeys.size(), 1, max_table_entries);
  expect(of_port("max_mtu (enum ibv_mtu)"), port.max_mtu, IBV_MTU_256, IBV_MTU_4096);
  expect(of_port("active_mtu (enum ibv_mtu)"), port.active_mtu, IBV_MTU_256, IBV_MTU_4096);
  if (port.active_mtu > port.max_mtu) {
    refuse(of_port(fmt::format("active_mtu is {}; max_mtu allows {} at most", mtu_bytes(port.active_mtu),
                               mtu_bytes(port.max_mtu))));
  }
}

}  // namespace

void check(const DeviceConfig& config) {
  expect_name(config.name);
  expect("first_qpn", config.first_qpn, 2, Qpn::mask);
  expect("max_sge", config.limits.max_sge, 1, piece_limit);
  expect("max_qp", config.limits.max_qp, 1, Qpn::mask - 1);
  expect("number of ports", config.ports.size(), 1, max_ports);
  for (std::size_t i = 0; i < config.ports.size(); ++i) check_port(config.ports[i], i + 1);
  if (std::uint64_t{config.first_qpn} + config.limits.max_qp > Qpn::mask + 1ULL) {
    refuse(fmt::format("first_qpn {} and max_qp {} go beyond 2^24 queue pair numbers; lower one", config.first_qpn,
                       config.limits.max_qp));
  }
  for (const PacketRule& rule : config.faults.packets) {
    if (!(rule.rate >= 0 && rule.rate <= 1)) {
      refuse(fmt::format("rate of a packet fault is {}; 0 to 1 is allowed", rule.rate));
    }
  }
}

}  // namespace verbatim::soft
