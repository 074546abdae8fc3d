// What a device's refusal is thrown as.
#pragma once

#include <string>

namespace verbatim::qp {

// "Cannot allocate memory (errno 12)".
[[nodiscard]] std::string words_of(int problem);
// Throws Error(device_failure): "WHAT: errno's words".
[[noreturn]] void fail(const std::string& what, int problem);

}  // namespace verbatim::qp
