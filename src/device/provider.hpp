// Where devices come from. Two implementations: ibverbs/ (hardware and the kernel's software devices) and soft/ (ours).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/context.hpp"

namespace verbatim::device {

class Provider {
 public:
  virtual ~Provider() = default;

  // Names of the devices that exist, in the order of the system. None is an empty list, not an error.
  [[nodiscard]] virtual std::vector<std::string> list() = 0;

  // Exact name. Throws Error: not_found with the names there are, permission or device_failure with errno's words.
  [[nodiscard]] virtual std::unique_ptr<Context> open(std::string_view name) = 0;
};

}  // namespace verbatim::device
