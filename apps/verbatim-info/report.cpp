#include "report.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "device/system.hpp"
#include "mem/registration_cache.hpp"

namespace verbatim::info {

Report make_report(const device::SelectionRule& rule) {
  Report report;
  report.inventory = device::System::of_this_host().list();
  try {
    report.choice = select(report.inventory, rule);
  } catch (const Error& error) {
    report.refusal = error.what();
  }
  report.numa_nodes = mem::read_numa_nodes();
  report.host = mem::read_host_limits();
  report.registration_cache_problem = mem::registration_cache_problem();
  return report;
}

std::vector<Row> rows_of(const device::DeviceLimits& limits) {
  return {
      {"max_qp", limits.max_qp},
      {"max_qp_wr", limits.max_qp_wr},
      {"max_sge", limits.max_sge},
      {"max_sge_rd", limits.max_sge_rd},
      {"max_cq", limits.max_cq},
      {"max_cqe", limits.max_cqe},
      {"max_srq", limits.max_srq},
      {"max_srq_wr", limits.max_srq_wr},
      {"max_srq_sge", limits.max_srq_sge},
      {"max_pd", limits.max_pd},
      {"max_ah", limits.max_ah},
      {"max_mr", limits.max_mr},
      {"max_mr_size", limits.max_mr_bytes},
      {"max_mw", limits.max_mw},
      {"max_qp_init_rd_atom", limits.max_rd_atomic},
      {"max_qp_rd_atom", limits.max_dest_rd_atomic},
      {"max_mcast_grp", limits.max_mcast_groups},
  };
}

std::vector<Row> rows_of(const device::Mlx5Capabilities& capabilities) {
  return {
      {"cqe_version_1", capabilities.cqe_version_1},
      {"enhanced_multi_packet_send", capabilities.enhanced_multi_packet_send},
      {"cqe_compression_128b", capabilities.cqe_compression_128b},
      {"cqe_padding_128b", capabilities.cqe_padding_128b},
      {"packet_based_credits", capabilities.packet_based_credits},
      {"real_time_timestamps", capabilities.real_time_timestamps},
      {"max_compressed_cqes", capabilities.max_compressed_cqes},
      {"max_dynamic_doorbells", capabilities.max_dynamic_doorbells},
      {"lag_ports", capabilities.lag_ports},
  };
}

std::string format_guid(std::uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, (guid >> 32) & 0xffff, (guid >> 16) & 0xffff,
                     guid & 0xffff);
}

}  // namespace verbatim::info
