#include "device/queue_pair/names.hpp"

#include <fmt/format.h>

namespace verbatim::qp {

std::string to_text(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      return "RESET";
    case IBV_QPS_INIT:
      return "INIT";
    case IBV_QPS_RTR:
      return "RTR";
    case IBV_QPS_RTS:
      return "RTS";
    case IBV_QPS_SQD:
      return "SQD";
    case IBV_QPS_SQE:
      return "SQE";
    case IBV_QPS_ERR:
      return "ERR";
    case IBV_QPS_UNKNOWN:
      break;
  }
  return fmt::format("state {}", static_cast<int>(state));
}

std::string to_text(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_RAW_PACKET:
      return "RAW_PACKET";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    case IBV_QPT_DRIVER:
      return "DRIVER";
  }
  return fmt::format("type {}", static_cast<int>(type));
}

std::string to_text(AttributeMask mask) {
  std::string text;
  const auto add = [&text](std::string_view name) { text.append(text.empty() ? "" : ", ").append(name); };
  for (const auto& attribute : all_attributes) {
    if (mask & attribute.bit) add(attribute.name);
    mask &= ~attribute.bit;
  }
  if (mask != 0) add(fmt::format("{:#x}", static_cast<unsigned>(mask)));
  return text.empty() ? "-" : text;
}

}  // namespace verbatim::qp
