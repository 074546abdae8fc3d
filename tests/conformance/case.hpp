// What a case starts from: two sides of a fresh fabric, and the sentences that its expectations are made of.
#pragma once

#include <gtest/gtest.h>

#include "conformance/side.hpp"

namespace verbatim::conformance {

// The route as the other side sees it.
[[nodiscard]] Route mirrored(const Route& route);

class ConformanceCase : public testing::Test {
 protected:
  ConformanceCase() : fabric(make_fabric()), a(*fabric, fabric->a()), b(*fabric, fabric->b()) {}
  void TearDown() override;  // both devices close without an error

  // A QP of this type and a region of so many bytes on both sides, connected.
  void connect(ibv_qp_type type = IBV_QPT_RC, const Route& route = {}, std::size_t bytes = 64 << 10);
  // Connects the QPs that both sides have.
  void connect_qps(const Route& route = {});

  std::unique_ptr<Fabric> fabric;
  Side a;
  Side b;
};

// Ends the case here on a device that is known not to do what follows.
#define SKIP_WHERE_IT_DEVIATES(side, deviation)                                                          \
  do {                                                                                                   \
    if ((side).deviates(deviation)) {                                                                    \
      GTEST_SKIP() << (side).device_name << " departs from the specification: " << to_string(deviation); \
    }                                                                                                    \
  } while (false)

// -- of one completion -------------------------------------------------------------------------------------------
[[nodiscard]] testing::AssertionResult completed(const ibv_wc& wc, std::uint64_t id, ibv_wc_opcode opcode);
// Of a failed request only these are defined: wr_id, status, qp_num and vendor_err (ibv_poll_cq(3)).
[[nodiscard]] testing::AssertionResult failed(const ibv_wc& wc, std::uint64_t id, ibv_wc_status status);
// What a request ends with when its key names nothing, and when a message is longer than the receive.
[[nodiscard]] ibv_wc_status key_error(const Side& side);
[[nodiscard]] ibv_wc_status length_error(const Side& side);
[[nodiscard]] std::uint32_t immediate_of(const ibv_wc& wc);  // host byte order

// -- of memory ---------------------------------------------------------------------------------------------------
[[nodiscard]] testing::AssertionResult holds_pattern(const Side& side, std::size_t offset, std::size_t bytes,
                                                     std::uint32_t seed);
[[nodiscard]] testing::AssertionResult holds_zeros(const Side& side, std::size_t offset, std::size_t bytes);

}  // namespace verbatim::conformance
