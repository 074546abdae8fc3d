// conf/soft.toml, made from the rows.
#include <fmt/format.h>

#include "device/soft/settings.hpp"
#include "device/soft/settings/rows.hpp"

namespace verbatim::soft {
namespace {

template <typename RowType, typename Owner>
std::string entry(const Owner& defaults, const RowType& row) {
  return fmt::format("# {}\n# {}\n{} = {}\n", row.sentence, allowed(row), row.name, show(defaults, row));
}

std::string device_entries(std::string_view table) {
  std::string text;
  for (const DeviceRow& row : device_rows()) {
    if (row.table == table) text += entry(DeviceConfig{}, row) + "\n";
  }
  return text;
}

std::string port_entries() {
  std::string text;
  for (const PortRow& row : port_rows()) text += "\n" + entry(PortConfig{}, row);
  return text;
}

std::string rule_entries() {
  std::string text;
  for (const RuleRow& row : rule_rows()) {
    text += fmt::format("#   {:<8} {}\n#   {:<8} {}; {} if left out\n", row.name, row.sentence, "", allowed(row),
                        show(PacketRule{}, row));
  }
  return text;
}

constexpr std::string_view head =
    R"(# Every knob of the soft device with its default. VERBATIM_SOFT_CONFIG names the file that is read. A variable of the
# environment counts before it: VERBATIM_SOFT_MAX_QP=8, VERBATIM_SOFT_ACTIVE_MTU=1024 (of all ports),
# VERBATIM_SOFT_GIDS="10.0.0.1, fe80::1 RoCE v1" and VERBATIM_SOFT_PKEYS="0xffff" (of the first port),
# VERBATIM_SOFT_FAULTS="drop:rate=0.01; delay:nth=3,delay=10us" (instead of the rules below).
#
# Made from the program's table of knobs; each entry says what it does, then what is allowed.

[soft]
)";

constexpr std::string_view faults_head =
    R"(# What goes wrong with packets that this device sends. The first rule that strikes a packet counts.
#
#   faults = [
#     {fault = "drop", packets = "acknowledge", rate = 0.01},
#     {fault = "delay", qpn = 17, nth = 3, limit = 1, delay = "10ms"},
#   ]
#
)";

constexpr std::string_view ports_head =
    R"([[soft.ports]] # once for each port
# Addresses, with or without the type: "10.0.0.1", "fe80::1 RoCE v1". Empty: a link-local and a routable one of RoCE v2,
# made anew for each opening. "::" leaves an entry of the table empty.
gids = []

# The first is what most programs use; 0x8000 set: full member.
pkeys = [0xffff]
)";

}  // namespace

std::string sample_settings() {
  std::string text(head);
  text += device_entries("");
  text += std::string(faults_head) + rule_entries() + "faults = []\n\n";
  text += fmt::format("[soft.{}]\n{}", limits_table, device_entries(limits_table));
  text += fmt::format("[soft.{}]\n{}", quirks_table, device_entries(quirks_table));
  return text + std::string(ports_head) + port_entries();
}

}  // namespace verbatim::soft
