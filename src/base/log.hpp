// The library's log: spdlog to standard error, quiet below warnings unless VERBATIM_LOG says otherwise
// (trace, debug, info, warning, error, off). Never on the data path.
#pragma once

#include <spdlog/spdlog.h>

namespace verbatim {

[[nodiscard]] spdlog::logger& log();

}  // namespace verbatim
