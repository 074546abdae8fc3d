#include "result.hpp"

namespace verbatim::perf {

double PointResult::per_operation(std::uint64_t SideUse::*count) const {
  return operations == 0 ? 0 : static_cast<double>(here.*count + there.*count) / static_cast<double>(operations);
}

double PointResult::signalled_share() const {
  const std::uint64_t posts = here.posts + there.posts;
  return posts == 0 ? 0 : static_cast<double>(here.signalled + there.signalled) / static_cast<double>(posts);
}

std::optional<double> PointResult::times_handover() const {
  if (!is_latency() || !yardstick) return std::nullopt;
  return latency_ns.p50 / yardstick->handover_ns;
}

std::optional<double> PointResult::share_of_memcpy() const {
  if (is_latency() || !yardstick || yardstick->memcpy_bytes_per_second == 0) return std::nullopt;
  return bytes_per_second() / yardstick->memcpy_bytes_per_second;
}

}  // namespace verbatim::perf
