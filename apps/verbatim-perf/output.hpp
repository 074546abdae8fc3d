// The ways to write results down.
#pragma once

#include <string>

#include "result.hpp"

namespace verbatim::perf {

[[nodiscard]] std::string to_table(const Results& results);
[[nodiscard]] std::string to_json(const Results& results);
[[nodiscard]] std::string to_csv(const Results& results);
// Size against latency, and size against bandwidth; what was not measured is left out. Fonts are the viewer's.
[[nodiscard]] std::string to_svg(const Results& results);

// "soft0:1, …; this host, cores 0 and 1; waits by polling": one line that says how the results came about.
[[nodiscard]] std::string describe(const Conditions& conditions);

}  // namespace verbatim::perf
