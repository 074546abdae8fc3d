// A whole run of the program, on this side.
#pragma once

#include "options.hpp"
#include "result.hpp"

namespace verbatim::perf {

// Starts the other side here, and measures against it.
[[nodiscard]] Results measure_locally(const Options& options);
// Measures against a side that listens.
[[nodiscard]] Results measure_remotely(const Options& options);
// Listens, says where on standard output, and is measured against, once.
void be_measured(const Options& options);

// All throw Error when something fails on either side.

}  // namespace verbatim::perf
