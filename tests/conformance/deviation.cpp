#include "conformance/deviation.hpp"

namespace verbatim::conformance {

std::string_view to_string(Deviation deviation) {
  switch (deviation) {
    case Deviation::unknown_key_is_operation_error:
      return "a local key that names nothing ends in LOC_QP_OP_ERR, not LOC_PROT_ERR";
    case Deviation::overlong_message_is_operation_error:
      return "a message longer than its receive ends in LOC_QP_OP_ERR and REM_OP_ERR, not LOC_LEN_ERR and "
             "REM_INV_REQ_ERR";
    case Deviation::message_beyond_limit_is_carried:
      return "a message longer than max_msg_sz is carried";
    case Deviation::receive_posted_in_error_stays:
      return "a receive posted in ERR is not flushed";
    case Deviation::window_bounds_are_ignored:
      return "access through a memory window is checked against its region's bounds, not its own";
    case Deviation::invalidation_is_not_flagged:
      return "a SEND WITH INVALIDATE arrives without IBV_WC_WITH_INV, its bit being that of IBV_WC_IP_CSUM_OK";
    case Deviation::inline_builder_needs_the_flag:
      return "ibv_wr_set_inline_data is ignored unless wr_flags has IBV_SEND_INLINE, too";
    case Deviation::list_builders_miscount:
      return "ibv_wr_set_sge_list and ibv_wr_set_inline_data_list of several pieces send other bytes than those";
    case Deviation::any_mtu_is_taken:
      return "a path MTU of 0 and one above the port's are taken";
    case Deviation::any_pkey_index_is_taken:
      return "a P_Key index beyond the table is taken";
    case Deviation::current_state_is_believed:
      return "IBV_QP_CUR_STATE is believed, not checked";
    case Deviation::drained_queue_does_not_go_on:
      return "a request posted in SQD is not begun on the return to RTS";
    case Deviation::controlled_qkey_is_sent:
      return "a Q_Key with its high bit set is sent as it is";
  }
  return "";
}

bool deviates(std::string_view device, Deviation /*all of them are of the same device*/) {
  // The kernel's rdma_rxe, seen with Linux 6.1 and rdma-core 44.
  return device.starts_with("rxe");
}

}  // namespace verbatim::conformance
