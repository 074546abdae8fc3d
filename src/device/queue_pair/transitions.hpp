// The state machine of queue pairs as data: which transitions there are and what ibv_modify_qp takes at each, by type
// (ibv_modify_qp(3) and the InfiniBand Architecture Specification, volume 1, 10.3.1 and 11.2.5.2).
//
// A transition that stays in its state (RTS→RTS) changes attributes only and is asked for without STATE.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>

#include "device/queue_pair/names.hpp"

namespace verbatim::qp {

// As `Transition::from`: the transition exists from every state.
inline constexpr ibv_qp_state any_state = IBV_QPS_UNKNOWN;

struct Transition {
  ibv_qp_type type;
  ibv_qp_state from;
  ibv_qp_state to;
  AttributeMask required;
  AttributeMask optional;

  [[nodiscard]] constexpr bool is(ibv_qp_type wanted, ibv_qp_state here, ibv_qp_state next) const {
    return type == wanted && to == next && (from == here || from == any_state);
  }
};

inline constexpr auto transitions = [] {
  constexpr AttributeMask state = IBV_QP_STATE;
  constexpr AttributeMask drained_event = IBV_QP_EN_SQD_ASYNC_NOTIFY;
  constexpr AttributeMask current = IBV_QP_CUR_STATE;
  constexpr AttributeMask access = IBV_QP_ACCESS_FLAGS;
  constexpr AttributeMask pkey = IBV_QP_PKEY_INDEX;
  constexpr AttributeMask port = IBV_QP_PORT;
  constexpr AttributeMask qkey = IBV_QP_QKEY;
  constexpr AttributeMask rnr_timer = IBV_QP_MIN_RNR_TIMER;
  constexpr AttributeMask alternate = IBV_QP_ALT_PATH;
  constexpr AttributeMask migration = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
  constexpr AttributeMask connection = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  constexpr AttributeMask responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  constexpr AttributeMask retries = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  constexpr AttributeMask requester = retries | IBV_QP_MAX_QP_RD_ATOMIC;
  constexpr auto RESET = IBV_QPS_RESET, INIT = IBV_QPS_INIT, RTR = IBV_QPS_RTR, RTS = IBV_QPS_RTS, SQD = IBV_QPS_SQD,
                 SQE = IBV_QPS_SQE, ERR = IBV_QPS_ERR;
  return std::array{
      Transition{IBV_QPT_UD, any_state, RESET, state, 0},
      Transition{IBV_QPT_UD, any_state, ERR, state, 0},
      Transition{IBV_QPT_UD, RESET, INIT, state | pkey | port | qkey, 0},
      Transition{IBV_QPT_UD, INIT, INIT, 0, pkey | port | qkey},
      Transition{IBV_QPT_UD, INIT, RTR, state, pkey | qkey},
      Transition{IBV_QPT_UD, RTR, RTS, state | IBV_QP_SQ_PSN, current | qkey},
      Transition{IBV_QPT_UD, RTS, RTS, 0, current | qkey},
      Transition{IBV_QPT_UD, RTS, SQD, state, drained_event},
      Transition{IBV_QPT_UD, SQD, RTS, state, current | qkey},
      Transition{IBV_QPT_UD, SQD, SQD, 0, pkey | qkey},
      Transition{IBV_QPT_UD, SQE, RTS, state, current | qkey},

      Transition{IBV_QPT_UC, any_state, RESET, state, 0},
      Transition{IBV_QPT_UC, any_state, ERR, state, 0},
      Transition{IBV_QPT_UC, RESET, INIT, state | pkey | port | access, 0},
      Transition{IBV_QPT_UC, INIT, INIT, 0, pkey | port | access},
      Transition{IBV_QPT_UC, INIT, RTR, state | connection, pkey | access | alternate},
      Transition{IBV_QPT_UC, RTR, RTS, state | IBV_QP_SQ_PSN, current | access | migration},
      Transition{IBV_QPT_UC, RTS, RTS, 0, current | access | migration},
      Transition{IBV_QPT_UC, RTS, SQD, state, drained_event},
      Transition{IBV_QPT_UC, SQD, RTS, state, current | access | migration},
      Transition{IBV_QPT_UC, SQD, SQD, 0, pkey | access | IBV_QP_AV | migration},
      Transition{IBV_QPT_UC, SQE, RTS, state, current | access},

      // No way out of SQE, because a failed send takes an RC queue pair straight to ERR.
      Transition{IBV_QPT_RC, any_state, RESET, state, 0},
      Transition{IBV_QPT_RC, any_state, ERR, state, 0},
      Transition{IBV_QPT_RC, RESET, INIT, state | pkey | port | access, 0},
      Transition{IBV_QPT_RC, INIT, INIT, 0, pkey | port | access},
      Transition{IBV_QPT_RC, INIT, RTR, state | connection | responder, pkey | access | alternate},
      Transition{IBV_QPT_RC, RTR, RTS, state | IBV_QP_SQ_PSN | requester, current | access | rnr_timer | migration},
      Transition{IBV_QPT_RC, RTS, RTS, 0, current | access | rnr_timer | migration},
      Transition{IBV_QPT_RC, RTS, SQD, state, drained_event},
      Transition{IBV_QPT_RC, SQD, RTS, state, current | access | rnr_timer | migration},
      Transition{IBV_QPT_RC, SQD, SQD, 0, pkey | port | access | IBV_QP_AV | requester | responder | migration},

      Transition{IBV_QPT_RAW_PACKET, any_state, RESET, state, 0},
      Transition{IBV_QPT_RAW_PACKET, any_state, ERR, state, 0},
      Transition{IBV_QPT_RAW_PACKET, RESET, INIT, state | port, 0},
      Transition{IBV_QPT_RAW_PACKET, INIT, RTR, state, 0},
      Transition{IBV_QPT_RAW_PACKET, RTR, RTS, state, 0},
  };
}();

// nullptr where there is no such transition.
[[nodiscard]] constexpr const Transition* find_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to) {
  const auto found = std::find_if(transitions.begin(), transitions.end(),
                                  [=](const Transition& transition) { return transition.is(type, from, to); });
  return found == transitions.end() ? nullptr : &*found;
}

// Whether the device moves a queue pair so by itself, without a modify: to ERR after a fatal error, and, where the
// service is unreliable, to SQE after a failed send.
[[nodiscard]] constexpr bool device_moves(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_ERR) return from != IBV_QPS_RESET;
  return to == IBV_QPS_SQE && (from == IBV_QPS_RTS || from == IBV_QPS_SQD) &&
         (type == IBV_QPT_UC || type == IBV_QPT_UD);
}

}  // namespace verbatim::qp
