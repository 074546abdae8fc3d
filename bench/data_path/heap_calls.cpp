#include "heap_calls.hpp"

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<std::uint64_t> calls{0};

std::atomic<bool> watching{false};
std::array<void*, 32> watched_call{};
std::atomic<int> watched_depth{0};

void count() noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  if (watching.load(std::memory_order_relaxed) && watching.exchange(false)) {
    watched_depth = backtrace(watched_call.data(), static_cast<int>(watched_call.size()));
  }
}

}  // namespace

namespace verbatim::data_path {

std::uint64_t heap_calls() noexcept {
  return calls.load(std::memory_order_relaxed);
}

void watch_heap() noexcept {
  void* here = nullptr;
  (void)backtrace(&here, 1);  // the first one ever loads a library
  watched_depth = 0;
  watching = true;
}

void show_watched_heap_call() {
  watching = false;
  backtrace_symbols_fd(watched_call.data(), watched_depth.exchange(0), STDERR_FILENO);
}

}  // namespace verbatim::data_path

// glibc's own, by the names under which it lets programs replace the others.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* __libc_valloc(std::size_t);
void* __libc_pvalloc(std::size_t);
void __libc_free(void*);

void* malloc(std::size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t elements, std::size_t bytes) {
  count();
  return __libc_calloc(elements, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count();
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count();
  if (alignment % sizeof(void*) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* const found = __libc_memalign(alignment, bytes);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}
void* valloc(std::size_t bytes) {
  count();
  return __libc_valloc(bytes);
}
void* pvalloc(std::size_t bytes) {
  count();
  return __libc_pvalloc(bytes);
}
void free(void* memory) {
  if (memory == nullptr) return;
  count();
  __libc_free(memory);
}
}
