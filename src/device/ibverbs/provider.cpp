#include "device/ibverbs/provider.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>

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

std::vector<std::string> names_of(const DeviceList& devices) {
  std::vector<std::string> names;
  for (auto* device : devices) names.emplace_back(ibv_get_device_name(device));
  return names;
}

[[noreturn]] void refuse(const ibv_device& device, int problem) {
  const bool permission = problem == EACCES || problem == EPERM;
  throw Error(permission ? ErrorCode::permission : ErrorCode::device_failure,
              fmt::format("can't open RDMA device '{}': /dev/infiniband/{}: {}{}", device.name, device.dev_name,
                          std::strerror(problem), permission ? "; this user needs to read and write it" : ""));
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
    throw Error(ErrorCode::not_found, fmt::format("there is no RDMA device '{}'; found: {}", name,
                                                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
};

}  // namespace

std::unique_ptr<Provider> make_ibverbs_provider() {
  return std::make_unique<IbverbsProvider>();
}

}  // namespace verbatim::device
