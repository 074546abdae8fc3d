// What devices of the mlx5 family can do beyond verbs.
#pragma once

#include <cstdint>
#include <optional>

struct ibv_context;

namespace verbatim::device {

struct Mlx5Capabilities {
  bool cqe_version_1 = false;               // a completion carries the user's index of its QP
  bool enhanced_multi_packet_send = false;  // several small packets in one WR
  bool cqe_compression_128b = false;
  bool cqe_padding_128b = false;
  bool packet_based_credits = false;
  bool real_time_timestamps = false;        // completions carry wall-clock time instead of device ticks
  std::uint32_t max_compressed_cqes = 0;    // in one compressed block; 0: no compression
  std::uint32_t max_dynamic_doorbells = 0;  // registers of their own for thread domains
  std::uint8_t lag_ports = 0;               // ports that the device bonds into one; 0 or 1: none
};

// Nothing for other devices, and where the device refuses to say. The context must be one of libibverbs.
[[nodiscard]] std::optional<Mlx5Capabilities> query_mlx5(ibv_context* context);

}  // namespace verbatim::device
