#include "qp/device_failure.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/error.hpp"

namespace verbatim::qp {

std::string words_of(int problem) {
  return fmt::format("{} (errno {})", std::strerror(problem), problem);
}

void fail(const std::string& what, int problem) {
  throw Error(ErrorCode::device_failure, fmt::format("{}: {}", what, words_of(problem)));
}

}  // namespace verbatim::qp
