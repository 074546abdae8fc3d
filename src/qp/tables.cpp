#include "qp/tables.hpp"

#include <fmt/format.h>

#include "qp/device_failure.hpp"

namespace verbatim::qp {

std::vector<ibv_gid_entry> gid_table(device::Context& context) {
  std::vector<ibv_gid_entry> gids;
  if (const int problem = context.query_gid_table(gids)) fail("GID table of " + context.name(), problem);
  return gids;
}

std::vector<std::uint16_t> pkey_table(device::Context& context, PortNumber port) {
  const auto what = fmt::format("P_Key table of {} port {}", context.name(), port.value);
  ibv_port_attr attributes{};
  if (const int problem = context.query_port(port.value, attributes)) fail(what, problem);
  std::vector<std::uint16_t> pkeys(attributes.pkey_tbl_len);
  for (std::size_t index = 0; index < pkeys.size(); ++index) {
    if (const int problem = context.query_pkey(port.value, static_cast<int>(index), pkeys[index])) fail(what, problem);
  }
  return pkeys;
}

}  // namespace verbatim::qp
