// What check(const Config&) of the public header refuses, and what it only questions.
#pragma once

#include <string>
#include <vector>

#include "verbatim/config.hpp"

namespace verbatim::config {

// A ring of RDMA writes holds at least this many of the largest records, so that a burst doesn't stop at each.
inline constexpr std::uint32_t least_records_per_ring = 8;
// A record is a message with what stands around it, rounded up to whole cache lines.
inline constexpr std::uint32_t record_overhead_bytes = 128;
inline constexpr std::uint32_t record_alignment_bytes = 64;
// Entries of one send or receive queue, control messages included: the most that common adapters have.
inline constexpr std::uint32_t most_queue_entries = 32768;
// Control messages that a peer can have unread at a time; the transport holds itself to that.
inline constexpr std::uint32_t least_control_slots = 5;
// Receives that are posted in one call, at most.
inline constexpr std::uint32_t most_reposted = 64;

// Throws Error(invalid_argument).
void refuse_what_is_wrong(const Config& config);

// One sentence for each thing that is allowed and yet probably not meant.
[[nodiscard]] std::vector<std::string> doubts(const Config& config);

}  // namespace verbatim::config
