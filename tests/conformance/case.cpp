#include "conformance/case.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

namespace verbatim::conformance {

Route mirrored(const Route& route) {
  Route other = route;
  std::swap(other.send_psn, other.receive_psn);
  std::swap(other.reads_out, other.reads_in);
  return other;
}

void ConformanceCase::TearDown() {
  EXPECT_EQ(a.endpoint->close(), 0);
  EXPECT_EQ(b.endpoint->close(), 0);
}

void ConformanceCase::connect(ibv_qp_type type, const Route& route, std::size_t bytes) {
  for (Side* side : {&a, &b}) {
    side->make_qp(side->qp_options(type));
    side->make_region(bytes);
  }
  connect_qps(route);
}

void ConformanceCase::connect_qps(const Route& route) {
  a.connect(b, route);
  b.connect(a, mirrored(route));
}

testing::AssertionResult completed(const ibv_wc& wc, std::uint64_t id, ibv_wc_opcode opcode) {
  if (wc.status != IBV_WC_SUCCESS) {
    return testing::AssertionFailure() << "request " << wc.wr_id << " ended with: " << ibv_wc_status_str(wc.status);
  }
  if (wc.wr_id != id) return testing::AssertionFailure() << "request " << wc.wr_id << " completed, expected " << id;
  if (wc.opcode != opcode) {
    return testing::AssertionFailure() << "request " << id << " has opcode " << wc.opcode << ", expected " << opcode;
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult failed(const ibv_wc& wc, std::uint64_t id, ibv_wc_status status) {
  if (wc.wr_id != id) return testing::AssertionFailure() << "request " << wc.wr_id << " ended, expected " << id;
  if (wc.status != status) {
    return testing::AssertionFailure() << "request " << id << " ended with: " << ibv_wc_status_str(wc.status)
                                       << ", expected: " << ibv_wc_status_str(status);
  }
  return testing::AssertionSuccess();
}

ibv_wc_status key_error(const Side& side) {
  return side.expected(IBV_WC_LOC_PROT_ERR, Deviation::unknown_key_is_operation_error, IBV_WC_LOC_QP_OP_ERR);
}

ibv_wc_status length_error(const Side& side) {
  return side.expected(IBV_WC_LOC_LEN_ERR, Deviation::overlong_message_is_operation_error, IBV_WC_LOC_QP_OP_ERR);
}

std::uint32_t immediate_of(const ibv_wc& wc) {
  return ntohl(wc.imm_data);
}

testing::AssertionResult holds_pattern(const Side& side, std::size_t offset, std::size_t bytes, std::uint32_t seed) {
  if (const auto index = side.first_difference(offset, bytes, seed)) {
    return testing::AssertionFailure() << "byte " << *index << " of " << bytes << " at offset " << offset
                                       << " is not what was sent";
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult holds_zeros(const Side& side, std::size_t offset, std::size_t bytes) {
  const std::vector<std::uint8_t> content = side.endpoint->read(side.buffer, offset, bytes);
  const auto touched = std::find_if(content.begin(), content.end(), [](std::uint8_t byte) { return byte != 0; });
  if (touched == content.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "byte " << offset + static_cast<std::size_t>(touched - content.begin())
                                     << " was written";
}

}  // namespace verbatim::conformance
