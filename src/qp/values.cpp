#include "qp/values.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/ids.hpp"
#include "device/queue_pair/units.hpp"

namespace verbatim::qp {
namespace {

class Faults {
 public:
  void expect_range(std::string_view name, std::uint64_t value, std::uint64_t lowest, std::uint64_t highest) {
    if (value >= lowest && value <= highest) return;
    list_.push_back(fmt::format("{} is {}, allowed are {} to {}", name, value, lowest, highest));
  }
  void add(std::string fault) { list_.push_back(std::move(fault)); }
  [[nodiscard]] std::string sentence() const { return fmt::format("{}", fmt::join(list_, "; ")); }

 private:
  std::vector<std::string> list_;
};

// Field widths of the packet headers and of the address vector (specification, volume 1, 7.7, 8.3 and 11.2.2.1).
constexpr unsigned highest_service_level = 15;
constexpr std::uint32_t highest_flow_label = 0xfffff;

void check_address(const ibv_ah_attr& address, std::string_view name, const Limits& limits, Faults& faults) {
  faults.expect_range(fmt::format("the port of {}", name), address.port_num, 1, static_cast<unsigned>(limits.ports));
  faults.expect_range(fmt::format("the service level of {}", name), address.sl, 0, highest_service_level);
  if (address.is_global) {
    faults.expect_range(fmt::format("the flow label of {}", name), address.grh.flow_label, 0, highest_flow_label);
  }
}

}  // namespace

Limits limits_of(const ibv_device_attr& device) {
  return {.ports = device.phys_port_cnt,
          .initiator_depth = device.max_qp_init_rd_atom,
          .responder_resources = device.max_qp_rd_atom};
}

std::string wrong_values(const ibv_qp_attr& attributes, AttributeMask given, const Limits& limits) {
  Faults faults;
  const auto range = [&](AttributeMask bit, std::string_view name, std::uint64_t value, std::uint64_t lowest,
                         std::uint64_t highest) {
    if (given & bit) faults.expect_range(name, value, lowest, highest);
  };
  const auto ports = static_cast<unsigned>(limits.ports);
  range(IBV_QP_PORT, "PORT", attributes.port_num, 1, ports);
  range(IBV_QP_RQ_PSN, "RQ_PSN", attributes.rq_psn, 0, Psn::mask);
  range(IBV_QP_SQ_PSN, "SQ_PSN", attributes.sq_psn, 0, Psn::mask);
  range(IBV_QP_DEST_QPN, "DEST_QPN", attributes.dest_qp_num, 0, Qpn::mask);
  range(IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER", attributes.min_rnr_timer, 0, RnrTimer::highest_code);
  range(IBV_QP_TIMEOUT, "TIMEOUT", attributes.timeout, 0, AckTimeout::highest_code);
  range(IBV_QP_RETRY_CNT, "RETRY_CNT", attributes.retry_cnt, 0, RetryCount::highest);
  range(IBV_QP_RNR_RETRY, "RNR_RETRY", attributes.rnr_retry, 0, RnrRetry::infinite_code);
  range(IBV_QP_PATH_MTU, "PATH_MTU", attributes.path_mtu, IBV_MTU_256, IBV_MTU_4096);
  range(IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC", attributes.max_rd_atomic, 0,
        static_cast<unsigned>(limits.initiator_depth));
  range(IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC", attributes.max_dest_rd_atomic, 0,
        static_cast<unsigned>(limits.responder_resources));
  if (given & IBV_QP_AV) check_address(attributes.ah_attr, "AV", limits, faults);
  if (given & IBV_QP_ALT_PATH) {
    check_address(attributes.alt_ah_attr, "ALT_PATH", limits, faults);
    faults.expect_range("the timeout of ALT_PATH", attributes.alt_timeout, 0, AckTimeout::highest_code);
  }
  if ((given & IBV_QP_PORT) && (given & IBV_QP_AV) && attributes.port_num != attributes.ah_attr.port_num) {
    faults.add(fmt::format("PORT is {} and the port of AV is {}: make them equal", attributes.port_num,
                           attributes.ah_attr.port_num));
  }
  return faults.sentence();
}

}  // namespace verbatim::qp
