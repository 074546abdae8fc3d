// One call of ibv_modify_qp: the attributes and the mask of those that count.
#pragma once

#include <infiniband/verbs.h>

#include "device/queue_pair/names.hpp"

namespace verbatim::qp {

struct Modification {
  ibv_qp_attr attributes{};
  AttributeMask mask = 0;
};

// To a state that takes nothing but its name: RESET, ERR, SQD, and RTS out of SQD or SQE.
[[nodiscard]] inline Modification to_state(ibv_qp_state state) {
  Modification modification;
  modification.attributes.qp_state = state;
  modification.mask = IBV_QP_STATE;
  return modification;
}

}  // namespace verbatim::qp
