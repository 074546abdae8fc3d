#include "base/error.hpp"

namespace verbatim {

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::no_space:
      return "no space";
    case ErrorCode::permission:
      return "permission denied";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::timed_out:
      return "timed out";
    case ErrorCode::device_failure:
      return "device failure";
  }
  return "unknown error code";
}

}  // namespace verbatim
