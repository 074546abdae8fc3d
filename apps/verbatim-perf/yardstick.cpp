#include "yardstick.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "peer.hpp"
#include "statistics.hpp"

namespace verbatim::perf {

double memcpy_bandwidth(std::uint64_t bytes) {
  constexpr std::uint64_t max_copied_bytes = 64ULL << 20;
  constexpr std::uint64_t bytes_between_looks = 1ULL << 20;
  constexpr std::chrono::milliseconds long_enough{3};
  bytes = std::min(bytes, max_copied_bytes);
  if (bytes == 0) return 0;
  std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes);
  std::memcpy(to.data(), from.data(), bytes);
  const std::uint64_t copies_between_looks = std::max<std::uint64_t>(bytes_between_looks / bytes, 1);
  std::uint64_t copied = 0;
  std::chrono::duration<double> elapsed{};
  const auto start = std::chrono::steady_clock::now();
  while (elapsed < long_enough) {
    for (std::uint64_t i = 0; i < copies_between_looks; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" ::: "memory");  // no copy may be thought superfluous
    }
    copied += copies_between_looks * bytes;
    elapsed = std::chrono::steady_clock::now() - start;
  }
  return static_cast<double>(copied) / elapsed.count();
}

double handover_ns(apps::HandoverLines& lines, int side, std::uint64_t round_trips,
                   const std::function<void()>& look_after) {
  constexpr unsigned calls_between_looks = 1024;
  const auto end = std::chrono::steady_clock::now() + patience;
  unsigned calls = 0;
  const auto spend_patience = [&] {
    if (++calls % calls_between_looks != 0) return;
    look_after();
    if (std::chrono::steady_clock::now() > end) {
      throw Error(ErrorCode::timed_out, "handing over a cache line: the other side takes no part");
    }
  };
  std::vector<double> batches;
  for (std::uint64_t batch = 0; batch < handover_batches; ++batch) {
    batches.push_back(
        apps::time_handover(lines, side, round_trips / handover_batches, apps::handover_looks, spend_patience));
  }
  return median(batches);
}

}  // namespace verbatim::perf
