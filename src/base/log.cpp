#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>

namespace verbatim {

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("verbatim", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("verbatim: %l: %v");
    const char* wanted = std::getenv("VERBATIM_LOG");
    made->set_level(wanted != nullptr ? spdlog::level::from_str(wanted) : spdlog::level::warn);
    return made;
  }();
  return *logger;
}

}  // namespace verbatim
