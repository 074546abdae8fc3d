// How often this process asks its heap for memory or gives some back: every call of malloc, calloc, realloc, free,
// aligned_alloc, posix_memalign, memalign, valloc and pvalloc, whatever thread or library makes it. A free of nothing
// is none. Memory that is mapped is not seen here: that is a system call.
#pragma once

#include <cstdint>

namespace verbatim::data_path {

// Since the process began.
[[nodiscard]] std::uint64_t heap_calls() noexcept;

// The next call leaves its backtrace.
void watch_heap() noexcept;
// Writes it to standard error, if there was one.
void show_watched_heap_call();

}  // namespace verbatim::data_path
