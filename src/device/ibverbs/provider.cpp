#include "device/ibverbs/provider.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "device/ibverbs/context.hpp"

namespace verbatim::device {
namespace {

// libibverbs' list of devices. A device opened from it outlives it.
class DeviceList {
 public:
  DeviceList() : devices_(ibv_get_device_list(&count_)) {
    // A kernel without RDMA has no devices, which is no failure.
    if (devices_ == nullptr && errno != ENOSYS) {
      throw Error(ErrorCode::device_failure,
                  fmt::format("libibverbs can't list the RDMA devices: {}", std::strerror(errno)));
    }
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  ~DeviceList() {
    if (devices_ != nullptr) ibv_free_device_list(devices_);
  }

  [[nodiscard]] ibv_device** begin() const { return devices_; }
  [[nodiscard]] ibv_device** end() const { return devices_ + count_; }

 private:
  int count_ = 0;
  ibv_device** devices_;
};

// The kernel's devices that libibverbs leaves out of its list: their node in /dev or their driver is missing.
std::vector<std::string> left_out(const std::vector<std::string>& listed) {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", absent)) {
    auto name = entry.path().filename().string();
    if (std::ranges::find(listed, name) == listed.end()) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> names_of(const DeviceList& devices) {
  std::vector<std::string> names;
  for (auto* device : devices) names.emplace_back(ibv_get_device_name(device));
  const auto others = left_out(names);
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

[[noreturn]] void refuse(const ibv_device& device, int problem) {
  // A refused node makes libibverbs look for it elsewhere, and how that ended hides why it was refused.
  const auto node = fmt::format("/dev/infiniband/{}", device.dev_name);
  if (faccessat(AT_FDCWD, node.c_str(), R_OK | W_OK, AT_EACCESS) != 0) problem = errno;
  const bool permission = problem == EACCES || problem == EPERM;
  throw Error(permission ? ErrorCode::permission : ErrorCode::device_failure,
              fmt::format("can't open RDMA device '{}': {}: {}{}", device.name, node, std::strerror(problem),
                          permission ? "; this user needs to read and write it" : ""));
}

[[noreturn]] void refuse_left_out(std::string_view name) {
  throw Error(
      ErrorCode::device_failure,
      fmt::format(
          "can't open RDMA device '{}': the kernel has it and libibverbs does not; either it has no "
          "/dev/infiniband/uverbsN here (a container must be given it), or its driver for user space is missing "
          "(Debian: ibverbs-providers)",
          name));
}

class IbverbsProvider final : public Provider {
 public:
  [[nodiscard]] std::vector<std::string> list() override { return names_of(DeviceList()); }

  [[nodiscard]] std::unique_ptr<Context> open(std::string_view name) override {
    const DeviceList devices;
    for (auto* device : devices) {
      if (name != ibv_get_device_name(device)) continue;
      auto* handle = ibv_open_device(device);
      if (handle == nullptr) refuse(*device, errno);
      return std::make_unique<IbverbsContext>(handle);
    }
    const auto names = names_of(devices);
    if (std::ranges::find(names, name) != names.end()) refuse_left_out(name);
    throw Error(ErrorCode::not_found, fmt::format("there is no RDMA device '{}'; found: {}", name,
                                                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
};

}  // namespace

std::unique_ptr<Provider> make_ibverbs_provider() {
  return std::make_unique<IbverbsProvider>();
}

}  // namespace verbatim::device
