#include "mem/registration_refusal.hpp"

#include <fmt/format.h>
#include <linux/capability.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/units.hpp"
#include "mem/host_limits.hpp"

namespace verbatim::mem {
namespace {

// A number of /proc/self/status; 0 where the kernel doesn't give it.
std::uint64_t status_number(std::string_view name, int base) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(name)) continue;
    const auto digits = line.find_first_not_of(" \t", name.size());
    std::uint64_t number = 0;
    if (digits != std::string::npos) {
      std::from_chars(line.data() + digits, line.data() + line.size(), number, base);
    }
    return number;
  }
  return 0;
}

// The kernel holds nobody with this right to the limit.
bool limit_applies() {
  return (status_number("CapEff:", 16) & (1ULL << CAP_IPC_LOCK)) == 0;
}

std::string size_or_unlimited(std::optional<std::uint64_t> bytes) {
  return bytes ? format_size(*bytes) : "unlimited";
}

[[noreturn]] void refuse_space(std::size_t bytes, std::uint64_t pinned) {
  const HostLimits limits = read_host_limits();
  const std::uint64_t used = std::max(pinned, status_number("VmPin:", 10) * 1024);
  if (limits.memlock_bytes && limit_applies() && used + bytes > *limits.memlock_bytes) {
    throw Error(ErrorCode::permission,
                fmt::format("registering {} would lock more memory than RLIMIT_MEMLOCK allows: {} (hard limit {}), of "
                            "which {} are used; raise it with `ulimit -l`, memlock in /etc/security/limits.conf, "
                            "LimitMEMLOCK= of a systemd unit or --ulimit memlock of a container",
                            format_size(bytes), format_size(*limits.memlock_bytes),
                            size_or_unlimited(limits.memlock_max_bytes), format_size(used)));
  }
  throw Error(ErrorCode::no_space,
              fmt::format("registering {} failed though RLIMIT_MEMLOCK ({}) allows it, with {} in use: the device's "
                          "table of regions, what it may pin or the host's memory is used up; register fewer or "
                          "larger pieces, or less",
                          format_size(bytes), size_or_unlimited(limits.memlock_bytes), format_size(used)));
}

}  // namespace

void refuse_registration(int error, const void* address, std::size_t bytes, Access access, std::uint64_t pinned) {
  switch (error) {
    case ENOMEM:
      refuse_space(bytes, pinned);
    case EFAULT:
    case EINVAL:
    case EACCES: {
      const bool writes = covers(access, Access::receive);
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} at {} can't be registered: {}; all of it must be mapped and {}", format_size(bytes),
                              fmt::ptr(address), std::strerror(error), writes ? "writable" : "readable"));
    }
    default:
      throw Error(ErrorCode::device_failure, fmt::format("the device refuses to register {} at {}: {}",
                                                         format_size(bytes), fmt::ptr(address), std::strerror(error)));
  }
}

}  // namespace verbatim::mem
