// Whether the values given to ibv_modify_qp fit the fields that the wire and the device have for them. Devices differ
// in what they do with a value that does not: some refuse it without a word, some cut it to size.
#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "device/queue_pair/names.hpp"

namespace verbatim::qp {

// What of a device bounds the attributes of its queue pairs (ibv_query_device).
struct Limits {
  int ports = 0;
  int initiator_depth = 0;      // RDMA reads and atomics that a queue pair may have outstanding: max_qp_init_rd_atom
  int responder_resources = 0;  // … that it may be the target of at a time: max_qp_rd_atom
};

[[nodiscard]] Limits limits_of(const ibv_device_attr& device);

// Every value among `given` that can't be right, as one sentence; empty if there is none.
[[nodiscard]] std::string wrong_values(const ibv_qp_attr& attributes, AttributeMask given, const Limits& limits);

}  // namespace verbatim::qp
