#include "qp/path_cache.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "qp/check.hpp"
#include "qp/connection.hpp"

namespace verbatim::qp {
namespace {

using namespace std::chrono_literals;

ibv_gid mapped(std::uint8_t last) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, last}};
}

RcConnection rc_connection() {
  Path path{.port = PortNumber{2},
            .route = Route{.destination = mapped(9), .source_gid_index = 3, .traffic_class = 106}};
  path.service_level = 3;
  return {.peer = {.path = path,
                   .path_mtu = PathMtu::from_bytes(1024),
                   .number = Qpn{0x123},
                   .first_expected = Psn(0x111111),
                   .first_sent = Psn(0x222222)},
          .pkey_index = 1,
          .access = IBV_ACCESS_REMOTE_WRITE,
          .initiator_depth = 8,
          .responder_resources = 4,
          .rnr_timer = RnrTimer(640us),
          .ack_timeout = AckTimeout(60ms),
          .retries = RetryCount(5),
          .rnr_retries = RnrRetry(6)};
}

PathCache connected() {
  PathCache cache(IBV_QPT_RC);
  const auto connection = rc_connection();
  cache.remember(to_init(connection));
  cache.remember(to_rtr(connection));
  cache.remember(to_rts(connection));
  return cache;
}

Error failure(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::busy, "none"};
}

TEST(Connection, StepsAreTakenByTheTransitionTable) {
  const auto rc = rc_connection();
  const UcConnection uc{.peer = rc.peer};
  const UdSettings ud{.port = PortNumber{1}, .pkey_index = 0, .qkey = 0x1234, .first_sent = Psn(7)};
  const auto expect_walk = [](ibv_qp_type type, std::initializer_list<Modification> steps) {
    auto state = IBV_QPS_RESET;
    for (const auto& step : steps) {
      EXPECT_EQ(to_sentence(check(type, state, step.attributes, step.mask)), "");
      state = step.attributes.qp_state;
    }
    EXPECT_EQ(state, IBV_QPS_RTS);
  };
  expect_walk(IBV_QPT_RC, {to_init(rc), to_rtr(rc), to_rts(rc)});
  expect_walk(IBV_QPT_UC, {to_init(uc), to_rtr(uc), to_rts(uc)});
  expect_walk(IBV_QPT_UD, {to_init(ud), to_rtr(ud), to_rts(ud)});
}

TEST(Connection, FieldsArriveEncoded) {
  const auto connection = rc_connection();
  const auto init = to_init(connection).attributes;
  EXPECT_EQ(init.port_num, 2);
  EXPECT_EQ(init.pkey_index, 1);
  EXPECT_EQ(init.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_WRITE});
  const auto rtr = to_rtr(connection).attributes;
  EXPECT_EQ(rtr.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(rtr.dest_qp_num, 0x123U);
  EXPECT_EQ(rtr.rq_psn, 0x111111U);
  EXPECT_EQ(rtr.max_dest_rd_atomic, 4);
  EXPECT_EQ(rtr.min_rnr_timer, 12);
  EXPECT_EQ(rtr.ah_attr.is_global, 1);
  EXPECT_EQ(rtr.ah_attr.port_num, 2);
  EXPECT_EQ(rtr.ah_attr.sl, 3);
  EXPECT_EQ(rtr.ah_attr.grh.sgid_index, 3);
  EXPECT_EQ(rtr.ah_attr.grh.traffic_class, 106);
  EXPECT_EQ(rtr.ah_attr.grh.hop_limit, 64);
  EXPECT_EQ(rtr.ah_attr.grh.dgid.raw[15], 9);
  const auto rts = to_rts(connection).attributes;
  EXPECT_EQ(rts.sq_psn, 0x222222U);
  EXPECT_EQ(rts.max_rd_atomic, 8);
  EXPECT_EQ(rts.timeout, 14);
  EXPECT_EQ(rts.retry_cnt, 5);
  EXPECT_EQ(rts.rnr_retry, 6);
}

TEST(Connection, HasNoGlobalRouteWithinAnInfiniBandSubnet) {
  const Path path{.port = PortNumber{1}, .route = {}, .destination_lid = 17, .source_path_bits = 1};
  const auto address = path.address();
  EXPECT_EQ(address.is_global, 0);
  EXPECT_EQ(address.dlid, 17);
  EXPECT_EQ(address.src_path_bits, 1);
}

TEST(PathCache, GivesBackTheStepsWithFreshPsns) {
  const auto cache = connected();
  const auto before = rc_connection();

  const auto init = cache.reset_to_init({});
  EXPECT_EQ(init.mask, to_init(before).mask);
  EXPECT_EQ(init.attributes.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(init.attributes.port_num, 2);
  EXPECT_EQ(init.attributes.pkey_index, 1);
  EXPECT_EQ(init.attributes.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_WRITE});

  const auto rtr = cache.init_to_rtr(Psn(0x777777), {});
  EXPECT_EQ(rtr.mask, to_rtr(before).mask);
  EXPECT_EQ(rtr.attributes.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(rtr.attributes.rq_psn, 0x777777U);
  EXPECT_EQ(rtr.attributes.dest_qp_num, 0x123U);
  EXPECT_EQ(rtr.attributes.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(rtr.attributes.min_rnr_timer, 12);
  EXPECT_EQ(rtr.attributes.max_dest_rd_atomic, 4);
  EXPECT_EQ(rtr.attributes.ah_attr.grh.traffic_class, 106);

  const auto rts = cache.rtr_to_rts(Psn(0x888888));
  EXPECT_EQ(rts.mask, to_rts(before).mask);
  EXPECT_EQ(rts.attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(rts.attributes.sq_psn, 0x888888U);
  EXPECT_EQ(rts.attributes.timeout, 14);
  EXPECT_EQ(rts.attributes.retry_cnt, 5);
  EXPECT_EQ(rts.attributes.rnr_retry, 6);
  EXPECT_EQ(rts.attributes.max_rd_atomic, 8);
}

TEST(PathCache, KeepsWhatWasChangedLaterAndSurvivesErrorAndReset) {
  auto cache = connected();
  Modification change;
  change.attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  change.attributes.min_rnr_timer = 20;
  change.attributes.port_num = 1;  // not among those that count
  change.mask = IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER;
  cache.remember(change);
  cache.remember(to_state(IBV_QPS_ERR));
  cache.remember(to_state(IBV_QPS_RESET));
  EXPECT_EQ(cache.reset_to_init({}).attributes.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_READ});
  EXPECT_EQ(cache.reset_to_init({}).attributes.port_num, 2);
  EXPECT_EQ(cache.init_to_rtr(Psn(1), {}).attributes.min_rnr_timer, 20);
}

TEST(PathCache, RefusesStepsThatWereNeverTaken) {
  PathCache cache(IBV_QPT_RC);
  cache.remember(to_init(rc_connection()));
  EXPECT_NO_THROW((void)cache.reset_to_init({}));
  const auto error = failure([&] { (void)cache.init_to_rtr(Psn(1), {}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_STREQ(error.what(),
               "re-connect INIT→RTR: the queue pair never came there, unknown are AV, PATH_MTU, RQ_PSN, MIN_RNR_TIMER, "
               "MAX_DEST_RD_ATOMIC, DEST_QPN");
}

using Bytes = std::array<std::uint8_t, sizeof(ibv_qp_attr)>;

// Every byte says where it stands, so that a forgotten field shows, and a crossed one too. Enums get values of their
// own.
ibv_qp_attr attributes_that_tell_places() {
  Bytes places;
  std::iota(places.begin(), places.end(), std::uint8_t{1});
  static_assert(places.size() < 255);
  auto attributes = std::bit_cast<ibv_qp_attr>(places);
  attributes.qp_state = IBV_QPS_RTS;
  attributes.cur_qp_state = IBV_QPS_SQD;
  attributes.path_mtu = IBV_MTU_4096;
  attributes.path_mig_state = IBV_MIG_ARMED;
  return attributes;
}

TEST(PathCache, RemembersEachAttribute) {
  const auto full = attributes_that_tell_places();
  const auto places = std::bit_cast<Bytes>(full);
  for (const auto& attribute : all_attributes) {
    SCOPED_TRACE(attribute.name);
    PathCache cache(IBV_QPT_RC);
    cache.remember({full, attribute.bit});
    const auto& [kept, mask] = cache.attributes();
    Bytes bytes;
    std::memcpy(bytes.data(), &kept, bytes.size());
    std::size_t remembered = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == 0) continue;
      EXPECT_EQ(bytes[i], places[i]);
      ++remembered;
    }
    const bool of_one_call = attribute.bit == IBV_QP_STATE || attribute.bit == IBV_QP_CUR_STATE ||
                             attribute.bit == IBV_QP_EN_SQD_ASYNC_NOTIFY;
    EXPECT_EQ(mask, of_one_call ? 0 : attribute.bit);
    EXPECT_EQ(remembered > 0, !of_one_call);
  }
}

ibv_gid_entry entry(std::uint32_t port, std::uint32_t index, std::uint8_t last, std::uint32_t type) {
  return {.gid = mapped(last), .gid_index = index, .port_num = port, .gid_type = type, .ndev_ifindex = 0};
}

TEST(PathCache, FindsTheSourceGidByValueAndType) {
  auto cache = connected();
  cache.keep_source_gid(SourceGid::of(entry(2, 3, 1, IBV_GID_TYPE_ROCE_V2)));
  const std::vector moved{
      entry(1, 0, 1, IBV_GID_TYPE_ROCE_V2),  // another port
      entry(2, 3, 5, IBV_GID_TYPE_ROCE_V2),  // now at the index that was in use
      entry(2, 4, 1, IBV_GID_TYPE_ROCE_V1),  // the same value of another type
      entry(2, 6, 1, IBV_GID_TYPE_ROCE_V2),
  };
  EXPECT_EQ(cache.init_to_rtr(Psn(1), moved).attributes.ah_attr.grh.sgid_index, 6);

  const std::vector gone{moved[0], moved[1], moved[2]};
  const auto error = failure([&] { (void)cache.init_to_rtr(Psn(1), gone); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_STREQ(error.what(),
               "GID ::ffff:10.77.0.1 (RoCE v2) is no longer in the table of port 2, which has: "
               "::ffff:10.77.0.5 (RoCE v2), ::ffff:10.77.0.1 (RoCE v1)");
}

TEST(PathCache, FindsThePkeyByValue) {
  auto cache = connected();
  cache.keep_pkey(0x8001);
  EXPECT_EQ(cache.reset_to_init(std::array<std::uint16_t, 3>{0x8001, 0xffff, 0}).attributes.pkey_index, 0);
  const auto error = failure([&] { (void)cache.reset_to_init(std::array<std::uint16_t, 2>{0xffff, 0x0001}); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_STREQ(error.what(), "P_Key 0x8001 is no longer in the table of port 2, which has: 0xffff, 0x0001");
}

TEST(PathCache, ForgetsValuesWhoseIndexWasReplaced) {
  auto cache = connected();
  cache.keep_source_gid(SourceGid::of(entry(2, 3, 1, IBV_GID_TYPE_ROCE_V2)));
  cache.keep_pkey(0x8001);
  cache.remember(to_rts(rc_connection()));
  EXPECT_TRUE(cache.source_gid().has_value());
  EXPECT_TRUE(cache.pkey().has_value());
  cache.remember(to_rtr(rc_connection()));
  EXPECT_FALSE(cache.source_gid().has_value());
  cache.remember(to_init(rc_connection()));
  EXPECT_FALSE(cache.pkey().has_value());
}

}  // namespace
}  // namespace verbatim::qp
