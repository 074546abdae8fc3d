// Staying on one processor.
#pragma once

namespace verbatim::apps {

// The calling thread from now on. Throws Error(invalid_argument) naming those that this process may run on.
void pin_to(int processor);

}  // namespace verbatim::apps
