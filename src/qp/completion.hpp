// A completion without verbs: what was posted, where, and how it ended.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "base/ids.hpp"
#include "qp/work_id.hpp"

namespace verbatim::qp {

// ibv_wc_status by value: those that a reliable or a datagram queue pair can meet. Others keep their number.
enum class CompletionStatus : std::uint8_t {
  success = IBV_WC_SUCCESS,
  local_length = IBV_WC_LOC_LEN_ERR,
  local_queue_pair_operation = IBV_WC_LOC_QP_OP_ERR,
  local_protection = IBV_WC_LOC_PROT_ERR,
  flushed = IBV_WC_WR_FLUSH_ERR,
  bad_response = IBV_WC_BAD_RESP_ERR,
  local_access = IBV_WC_LOC_ACCESS_ERR,
  remote_invalid_request = IBV_WC_REM_INV_REQ_ERR,
  remote_access = IBV_WC_REM_ACCESS_ERR,
  remote_operation = IBV_WC_REM_OP_ERR,
  retries_exceeded = IBV_WC_RETRY_EXC_ERR,
  rnr_retries_exceeded = IBV_WC_RNR_RETRY_EXC_ERR,
  remote_aborted = IBV_WC_REM_ABORT_ERR,
  fatal = IBV_WC_FATAL_ERR,
  response_timeout = IBV_WC_RESP_TIMEOUT_ERR,
  general = IBV_WC_GENERAL_ERR,
};

// In verbs' own words ("transport retry counter exceeded").
[[nodiscard]] inline const char* to_string(CompletionStatus status) noexcept {
  return ibv_wc_status_str(static_cast<ibv_wc_status>(status));
}

struct WorkCompletion {
  WorkId id;
  Qpn qpn;
  CompletionStatus status = CompletionStatus::success;
  std::uint32_t bytes = 0;  // of a receive that succeeded: the length of the message; otherwise nothing to trust

  [[nodiscard]] bool failed() const noexcept { return status != CompletionStatus::success; }
};

}  // namespace verbatim::qp
