// What verbs calls things, in words: states, types, attribute bits. Messages, the documentation and the tests read
// these.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <string>
#include <string_view>

namespace verbatim::qp {

// IBV_QP_* bits in the type that ibv_modify_qp takes them in.
using AttributeMask = int;

struct Attribute {
  AttributeMask bit;
  std::string_view name;  // without IBV_QP_
};

// Every bit that verbs knows, in verbs' order. Whoever handles attributes one by one goes through this list.
inline constexpr std::array all_attributes{
    Attribute{IBV_QP_STATE, "STATE"},
    Attribute{IBV_QP_CUR_STATE, "CUR_STATE"},
    Attribute{IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"},
    Attribute{IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
    Attribute{IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
    Attribute{IBV_QP_PORT, "PORT"},
    Attribute{IBV_QP_QKEY, "QKEY"},
    Attribute{IBV_QP_AV, "AV"},
    Attribute{IBV_QP_PATH_MTU, "PATH_MTU"},
    Attribute{IBV_QP_TIMEOUT, "TIMEOUT"},
    Attribute{IBV_QP_RETRY_CNT, "RETRY_CNT"},
    Attribute{IBV_QP_RNR_RETRY, "RNR_RETRY"},
    Attribute{IBV_QP_RQ_PSN, "RQ_PSN"},
    Attribute{IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
    Attribute{IBV_QP_ALT_PATH, "ALT_PATH"},
    Attribute{IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
    Attribute{IBV_QP_SQ_PSN, "SQ_PSN"},
    Attribute{IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
    Attribute{IBV_QP_PATH_MIG_STATE, "PATH_MIG_STATE"},
    Attribute{IBV_QP_CAP, "CAP"},
    Attribute{IBV_QP_DEST_QPN, "DEST_QPN"},
    Attribute{IBV_QP_RATE_LIMIT, "RATE_LIMIT"},
};

inline constexpr std::array all_states{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                       IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};

// "RTS"; a value outside the enum is written as its number.
[[nodiscard]] std::string to_text(ibv_qp_state state);
// "RC"; as above.
[[nodiscard]] std::string to_text(ibv_qp_type type);
// "AV, PATH_MTU", in verbs' order; bits that verbs does not know follow as one hexadecimal number; "-" for none.
[[nodiscard]] std::string to_text(AttributeMask mask);

}  // namespace verbatim::qp
