// The configuration that a program's workers share, and its place among devices.
#pragma once

#include "verbatim/config.hpp"

namespace verbatim {

// Make it, and workers, after daemon() and setuid(): devices don't survive either. It must outlive its workers. May be
// used by several threads at once.
class Context {
 public:
  // Throws Error(invalid_argument) as check() does.
  explicit Context(Config config = load_config());
  [[nodiscard]] const Config& config() const noexcept { return config_; }

 private:
  Config config_;
};

}  // namespace verbatim
