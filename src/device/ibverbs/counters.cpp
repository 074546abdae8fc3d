#include "device/ibverbs/counters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device/sysfs.hpp"

namespace verbatim::device {
namespace {

std::vector<Counter> read_group(const std::filesystem::path& directory) {
  std::vector<Counter> counters;
  std::error_code absent;
  for (const auto& file : std::filesystem::directory_iterator(directory, absent)) {
    const auto name = file.path().filename().string();
    if (name == "lifespan") continue;  // for how long the driver keeps what it read, in milliseconds
    if (const auto value = read_number(file.path())) counters.push_back({name, *value});
  }
  std::ranges::sort(counters, {}, &Counter::name);
  return counters;
}

}  // namespace

std::vector<Counter> read_counters(const std::filesystem::path& sysfs, std::string_view device, std::uint8_t port) {
  const auto directory = sysfs / "class/infiniband" / device / "ports" / fmt::format("{}", port);
  auto counters = read_group(directory / "hw_counters");
  auto common = read_group(directory / "counters");
  counters.insert(counters.end(), common.begin(), common.end());
  return counters;
}

}  // namespace verbatim::device
