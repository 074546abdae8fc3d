// Which processors this process may use, and staying on one of them.
#pragma once

#include <vector>

namespace verbatim::apps {

// The kernel's numbers, ascending.
[[nodiscard]] std::vector<int> allowed_processors();

// The calling thread from now on. Throws Error(invalid_argument) if it may not run there.
void pin_to(int processor);

}  // namespace verbatim::apps
