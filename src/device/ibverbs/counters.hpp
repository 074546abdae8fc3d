// The kernel's counts of one port: hw_counters of the driver, then the counters that every InfiniBand port has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "device/context.hpp"

namespace verbatim::device {

// By name within each of the two groups. Files that hold no count are left out; none at all is an empty list.
[[nodiscard]] std::vector<Counter> read_counters(const std::filesystem::path& sysfs, std::string_view device,
                                                 std::uint8_t port);

}  // namespace verbatim::device
