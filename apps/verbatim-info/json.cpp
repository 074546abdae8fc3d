// The report for programs. Sizes are bytes, what is unknown or unlimited is null, and no member comes or goes with the
// device, except mlx5's.
#include <nlohmann/json.hpp>

#include "report.hpp"

namespace verbatim::info {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json rows_as_json(const std::vector<Row>& rows) {
  Json object = Json::object();
  for (const auto& [name, value] : rows) object[std::string(name)] = value;
  return object;
}

Json as_json(const device::GidEntry& entry) {
  return {{"index", entry.index},
          {"gid", to_string(entry.gid)},
          {"type", to_string(entry.type)},
          {"network_device", entry.network_device}};
}

Json as_json(const device::Selection& choice) {
  return {{"device", choice.device}, {"provider", to_string(choice.provider)}, {"port", choice.port.value},
          {"reason", choice.reason}, {"gid", as_json(choice.gid.entry)},       {"gid_reason", choice.gid.reason}};
}

Json as_json(const device::PortDescription& port) {
  Json gids = Json::array();
  for (const auto& entry : port.gids) gids.push_back(as_json(entry));
  Json pkeys = Json::array();
  for (const auto& pkey : port.pkeys) pkeys.push_back({{"index", pkey.index}, {"value", pkey.value}});
  return {{"number", port.number.value},
          {"state", to_string(port.state)},
          {"link_layer", to_string(port.link_layer)},
          {"lid", port.lid},
          {"active_mtu", port.active_mtu_bytes},
          {"max_mtu", port.max_mtu_bytes},
          {"max_msg_sz", port.max_message_bytes},
          {"gid_table_length", port.gid_table_length},
          {"gids", gids},
          {"pkeys", pkeys}};
}

Json as_json(const device::DeviceDescription& device) {
  Json ports = Json::array();
  for (const auto& port : device.ports) ports.push_back(as_json(port));
  Json json = {{"name", device.name},
               {"provider", to_string(device.provider)},
               {"node_guid", format_guid(device.node_guid)},
               {"firmware", device.firmware},
               {"numa_node", or_null(device.placement.numa_node)},
               {"cpus", device.placement.cpus},
               {"ports", ports},
               {"atomics", to_string(device.limits.atomics)},
               {"on_demand_paging", device.limits.on_demand_paging},
               {"limits", rows_as_json(rows_of(device.limits))}};
  if (device.mlx5) json["mlx5"] = rows_as_json(rows_of(*device.mlx5));
  return json;
}

const char* to_string(mem::ForkSupport fork) {
  switch (fork) {
    case mem::ForkSupport::none:
      return "none";
    case mem::ForkSupport::withheld:
      return "withheld";
    case mem::ForkSupport::copied:
      return "copied";
  }
  return "unknown";
}

Json host_as_json(const Report& report) {
  Json nodes = Json::array();
  for (const auto& node : report.numa_nodes) {
    nodes.push_back({{"index", node.index},
                     {"memory", node.memory_bytes},
                     {"cores", node.cores},
                     {"cpus", node.cpus},
                     {"allowed_cpus", node.allowed_cpus}});
  }
  const auto& host = report.host;
  const auto& problem = report.registration_cache_problem;
  Json pools = Json::array();
  for (const auto& pool : host.huge_pages) {
    pools.push_back({{"page_size", pool.page_bytes}, {"total", pool.total}, {"free", pool.free}});
  }
  Json room = nullptr;
  if (host.shared_memory) room = {{"total", host.shared_memory->total_bytes}, {"free", host.shared_memory->free_bytes}};
  return {{"numa_nodes", nodes},
          {"memlock", or_null(host.memlock_bytes)},
          {"memlock_max", or_null(host.memlock_max_bytes)},
          {"huge_pages", pools},
          {"dev_shm", room},
          {"fork", to_string(host.fork)},
          {"ptrace_scope", static_cast<int>(host.ptrace_scope)},
          {"registration_cache", problem.empty()},
          {"registration_cache_problem", problem.empty() ? Json(nullptr) : Json(problem)}};
}

}  // namespace

std::string to_json(const Report& report) {
  Json devices = Json::array();
  for (const auto& device : report.inventory.devices) devices.push_back(as_json(device));
  Json skipped = Json::array();
  for (const auto& device : report.inventory.skipped) {
    skipped.push_back({{"name", device.name}, {"reason", device.reason}});
  }
  const Json json = {{"version", VERBATIM_VERSION},
                     {"choice", report.choice ? as_json(*report.choice) : Json(nullptr)},
                     {"refusal", report.choice ? Json(nullptr) : Json(report.refusal)},
                     {"devices", devices},
                     {"skipped", skipped},
                     {"host", host_as_json(report)}};
  // Text of a driver need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace verbatim::info
