// All devices of this host, whoever provides them.
#pragma once

#include <filesystem>
#include <memory>

#include "device/context.hpp"
#include "device/description.hpp"
#include "device/provider.hpp"
#include "device/selection.hpp"

namespace verbatim::device {

class System {
 public:
  // libibverbs and the soft device, as a program gets them. Throws Error where the soft device is set up wrongly
  // (soft/settings.hpp).
  [[nodiscard]] static System of_this_host();

  // Either provider may be missing. `sysfs` is where the places of devices are looked up.
  System(std::unique_ptr<Provider> ibverbs, std::unique_ptr<Provider> soft, std::filesystem::path sysfs = "/sys");

  // Opens every device for a moment. One that can't be opened or described is skipped with the reason, never an error.
  // After daemon() or setuid(), not before.
  [[nodiscard]] Inventory list();

  // Throws Error as Provider::open.
  [[nodiscard]] std::unique_ptr<Context> open(const Selection& selection);

 private:
  void add(ProviderKind kind, Provider* provider, Inventory& inventory);

  std::unique_ptr<Provider> ibverbs_;
  std::unique_ptr<Provider> soft_;
  std::filesystem::path sysfs_;
};

}  // namespace verbatim::device
