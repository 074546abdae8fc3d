#include "device/ibverbs/mlx5.hpp"

#include <infiniband/mlx5dv.h>

namespace verbatim::device {

std::optional<Mlx5Capabilities> query_mlx5(ibv_context* context) {
  if (!mlx5dv_is_supported(context->device)) return std::nullopt;
  mlx5dv_context attributes{};
  attributes.comp_mask =
      MLX5DV_CONTEXT_MASK_CQE_COMPRESION | MLX5DV_CONTEXT_MASK_DYN_BFREGS | MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS;
  if (mlx5dv_query_device(context, &attributes) != 0) return std::nullopt;

  // The device clears the bits of what it doesn't know and leaves those fields at zero.
  Mlx5Capabilities capabilities;
  capabilities.cqe_version_1 = (attributes.flags & MLX5DV_CONTEXT_FLAGS_CQE_V1) != 0;
  capabilities.enhanced_multi_packet_send = (attributes.flags & MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW) != 0;
  capabilities.cqe_compression_128b = (attributes.flags & MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP) != 0;
  capabilities.cqe_padding_128b = (attributes.flags & MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD) != 0;
  capabilities.packet_based_credits = (attributes.flags & MLX5DV_CONTEXT_FLAGS_PACKET_BASED_CREDIT_MODE) != 0;
  capabilities.real_time_timestamps = (attributes.flags & MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS) != 0;
  capabilities.max_compressed_cqes = attributes.cqe_comp_caps.max_num;
  capabilities.max_dynamic_doorbells = attributes.max_dynamic_bfregs;
  capabilities.lag_ports = attributes.num_lag_ports;
  return capabilities;
}

}  // namespace verbatim::device
