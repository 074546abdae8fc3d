// What a device is known to do against the specification. A case asks here before it skips an expectation or accepts
// another status, so that everything forgiven is listed in one place, with the device that it is forgiven.
#pragma once

#include <cstdint>
#include <string_view>

namespace verbatim::conformance {

enum class Deviation : std::uint8_t {
  unknown_key_is_operation_error,
  overlong_message_is_operation_error,
  message_beyond_limit_is_carried,
  receive_posted_in_error_stays,
  window_bounds_are_ignored,
  invalidation_is_not_flagged,
  inline_builder_needs_the_flag,
  list_builders_miscount,
  any_mtu_is_taken,
  any_pkey_index_is_taken,
  current_state_is_believed,
  drained_queue_does_not_go_on,
  controlled_qkey_is_sent,
};

// One sentence, for the reason of a skip.
[[nodiscard]] std::string_view to_string(Deviation deviation);

[[nodiscard]] bool deviates(std::string_view device, Deviation deviation);

}  // namespace verbatim::conformance
