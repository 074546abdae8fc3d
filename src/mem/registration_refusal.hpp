// Why memory can't be registered, in words that a person can act on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mem/region.hpp"

namespace verbatim::mem {

// Throws the Error that RegisteredRegion::of() promises. `error` is errno of reg_mr; `pinned` is what the library has
// registered so far (the kernel's own count is looked at too: it knows of other libraries).
[[noreturn]] void refuse_registration(int error, const void* address, std::size_t bytes, Access access,
                                      std::uint64_t pinned);

}  // namespace verbatim::mem
