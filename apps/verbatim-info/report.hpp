// Everything the program has to say, before it is written as text or as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/description.hpp"
#include "device/selection.hpp"
#include "mem/host_limits.hpp"
#include "mem/topology.hpp"

namespace verbatim::info {

struct Report {
  device::Inventory inventory;
  std::optional<device::Selection> choice;
  std::string refusal;  // why there is no choice
  std::vector<mem::NumaNode> numa_nodes;
  mem::HostLimits host;
  std::string registration_cache_problem;  // why users' buffers must be registered each time; empty if they need not
};

[[nodiscard]] Report make_report(const device::SelectionRule& rule);

// Names as verbs has them, so that they are found in its manual pages.
using Row = std::pair<std::string_view, std::uint64_t>;
[[nodiscard]] std::vector<Row> rows_of(const device::DeviceLimits& limits);
[[nodiscard]] std::vector<Row> rows_of(const device::Mlx5Capabilities& capabilities);  // flags are 0 or 1

// "0002:c903:00a1:b2c3"
[[nodiscard]] std::string format_guid(std::uint64_t guid);

[[nodiscard]] std::string to_text(const Report& report);
[[nodiscard]] std::string to_json(const Report& report);

}  // namespace verbatim::info
