// Ordinary memory in whole pages.
#pragma once

#include <cstddef>

#include "device/context.hpp"

namespace verbatim::device {

// Private, zeroed, page-aligned and page-rounded. Empty with errno on failure.
[[nodiscard]] Memory map_pages(std::size_t bytes);
void unmap_pages(Memory memory);

}  // namespace verbatim::device
