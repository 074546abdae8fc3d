// What set-up throws: a code that programs branch on, and a sentence that a person can act on.
#pragma once

#include <stdexcept>
#include <string>

namespace verbatim {

enum class ErrorCode {
  invalid_argument,  // a value that can never be right: the sentence names the thing, the value and what is allowed
  not_found,         // a name or an index that does not exist here: the sentence lists what does
  no_space,          // memory, /dev/shm, a table or a device limit used up: the sentence says used and limit
  permission,        // the system refuses: the sentence names the limit or the right that is missing
  busy,              // held by somebody else: the sentence names the holder
  unsupported,       // the device cannot do it
  timed_out,         // a bound with a name ran out
  device_failure,    // the device refused for a reason of its own; errno is in the sentence
};

[[nodiscard]] const char* to_string(ErrorCode code) noexcept;

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace verbatim
