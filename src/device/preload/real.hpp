// The functions of libibverbs itself, behind those that this library puts in their place.
#pragma once

#include <dlfcn.h>

#include <cerrno>

namespace verbatim::preload {

// nullptr where the installed libibverbs has none of that name: older than the program's.
template <typename Function>
[[nodiscard]] Function* find_real(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace verbatim::preload

// The real function of the same name, or a return with `otherwise` and errno.
#define VERBATIM_CALL_REAL(function, otherwise, ...)                                       \
  do {                                                                                     \
    static auto* const real = verbatim::preload::find_real<decltype(function)>(#function); \
    if (real == nullptr) return errno = EOPNOTSUPP, otherwise;                             \
    return real(__VA_ARGS__);                                                              \
  } while (false)
