// Huge pages for memory that is there already.
#pragma once

#include "base/switch.hpp"
#include "device/context.hpp"

namespace verbatim::mem {

// Asks the kernel for huge pages in this memory (transparent ones: they need no pool that could run out), or for none.
// Where the kernel has none for it, normal pages stay, and the first time in a process it is said so: a warning if
// `wanted` is on, a notice at info level if it is automatic.
void ask_for_huge_pages(const device::Memory& memory, Switch wanted);

}  // namespace verbatim::mem
