// Where Linux (rdma_rxe, a RoCE device) judges a modify otherwise than our table, and why. The sweep holds the kernel
// to exactly these, and docs/states.md shows them.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "device/queue_pair/names.hpp"

namespace verbatim::qp::test {

struct Difference {
  std::vector<ibv_qp_type> types;
  std::vector<std::pair<ibv_qp_state, ibv_qp_state>> transitions;
  AttributeMask left_out;
  AttributeMask added;
  bool allowed_by_linux;  // and refused by us; or the other way round
  const char* reason;

  [[nodiscard]] bool covers(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, AttributeMask without,
                            AttributeMask with) const {
    return std::ranges::count(types, type) > 0 && std::ranges::count(transitions, std::pair{from, to}) > 0 &&
           left_out == without && added == with;
  }
};

inline const std::vector<Difference>& differences_from_linux() {
  static const std::vector<ibv_qp_type> every{IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}, connected{IBV_QPT_RC, IBV_QPT_UC};
  constexpr auto reset = IBV_QPS_RESET, init = IBV_QPS_INIT, rtr = IBV_QPS_RTR, rts = IBV_QPS_RTS, sqd = IBV_QPS_SQD,
                 error = IBV_QPS_ERR;
  static const std::vector<Difference> differences{
      {every,
       {{reset, error}},
       0,
       0,
       false,
       "By the specification any state leads to ERR; Linux has no way there from RESET, where nothing is to be "
       "flushed. "
       "The device's refusal is passed on."},
      {every,
       {{reset, reset}, {reset, error}, {error, reset}, {error, error}},
       IBV_QP_STATE,
       0,
       true,
       "Linux never asks for STATE: a call without it means to stay, and staying in RESET or ERR takes nothing. "
       "Such a call does nothing, so it is a mistake."},
      {every,
       {{init, init}, {rts, rts}, {sqd, sqd}},
       0,
       IBV_QP_STATE,
       true,
       "Linux lets every call name a state, that of now included. By our table only RESET and ERR are entered again."},
      {connected,
       {{init, rtr}, {rtr, rts}, {rts, rts}, {sqd, rts}, {sqd, sqd}},
       0,
       IBV_QP_ALT_PATH,
       false,
       "Alternate paths are for InfiniBand; Linux refuses them on RoCE whatever the transition."},
      {{IBV_QPT_UC},
       {{sqd, sqd}},
       0,
       IBV_QP_AV,
       false,
       "Linux adds PORT to a call that changes AV there, and then refuses PORT, which only RC may set there."},
  };
  return differences;
}

}  // namespace verbatim::qp::test
