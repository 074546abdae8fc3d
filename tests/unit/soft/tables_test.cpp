// GID and P_Key tables, port state and MTU, edited while the device runs; and what each packet carries of them.
#include <arpa/inet.h>

#include <cerrno>
#include <string>

#include "base/error.hpp"
#include "device/selection.hpp"
#include "unit/soft/hub.hpp"
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

GidConfig gid_of(const char* text, ibv_gid_type type = IBV_GID_TYPE_ROCE_V2) {
  GidConfig config{.gid = {}, .type = type};
  EXPECT_EQ(inet_pton(AF_INET6, text, config.gid.raw), 1) << text;
  return config;
}

// Devices of two ports; the pair is connected through the first ones.
class Tables : public RcPair {
 protected:
  Tables() { config_a.ports = config_b.ports = {PortConfig{}, PortConfig{}}; }

  static void expect_one_event(Side& side, ibv_event_type type, int port) {
    const auto events = side.async_events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].event_type, type);
    EXPECT_EQ(events[0].element.port_num, port);
  }
  static ibv_port_attr port_of(Side& side, std::uint8_t number) {
    ibv_port_attr port{};
    EXPECT_EQ(side.context->query_port(number, port), 0);
    return port;
  }
  static std::vector<ibv_gid_entry> gids_of(Side& side, std::uint32_t port) {
    std::vector<ibv_gid_entry> entries;
    EXPECT_EQ(side.context->query_gid_table(entries), 0);
    std::erase_if(entries, [&](const ibv_gid_entry& entry) { return entry.port_num != port; });
    return entries;
  }
  ibv_wc_status write_status() {
    EXPECT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 100, b, 0), 0);
    return completion(a).status;
  }
};

// -- GIDs ------------------------------------------------------------------------------------------------------------

TEST_F(Tables, ChangedGidIsToldWithItsPort) {
  const auto of_the_first = gids_of(a, 1);
  a.control().set_gid(2, 3, gid_of("2001:db8::7", IBV_GID_TYPE_ROCE_V1));
  expect_one_event(a, IBV_EVENT_GID_CHANGE, 2);
  EXPECT_EQ(gids_of(a, 1).size(), of_the_first.size());
  const auto entries = gids_of(a, 2);
  ASSERT_EQ(entries.size(), 3U) << "the place between is empty";
  EXPECT_EQ(entries[2].gid_index, 3U);
  EXPECT_EQ(entries[2].gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V1));
  EXPECT_EQ(port_of(a, 2).gid_tbl_len, 4);
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS) << "nobody uses port 2";
}

TEST_F(Tables, EmptyGidIndexIsRefused) {
  a.control().set_gid(1, 1, {});
  expect_one_event(a, IBV_EVENT_GID_CHANGE, 1);
  ASSERT_EQ(modify_to(a, IBV_QPS_RESET), 0);
  to_init(a);
  EXPECT_EQ(try_rtr(a, b.gid(), b.qp->qp_num, 0, 1), EINVAL) << "emptied";
  EXPECT_EQ(try_rtr(a, b.gid(), b.qp->qp_num, 0, 9), EINVAL) << "beyond the table";
  EXPECT_EQ(try_rtr(a, b.gid(), b.qp->qp_num, 0, 0), 0);
}

TEST_F(Tables, NobodyAnswersToAGidThatIsGone) {
  const ibv_gid old = b.gid();
  b.control().set_gid(1, 1, gid_of("2001:db8::8"));
  EXPECT_EQ(write_status(), IBV_WC_RETRY_EXC_ERR);
  // The new one works, once connected to it.
  reconnect(settings);
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS);
  // And the old one again, once it is back.
  b.control().set_gid(1, 1, {.gid = old});
  reconnect(settings);
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS);
}

TEST_F(Tables, AGidOfAnotherDeviceIsNotTaken) {
  EXPECT_THROW(a.control().set_gid(1, 2, {.gid = b.gid()}), Error);
  EXPECT_EQ(gids_of(a, 1).size(), 2U) << "and is not in the table";
  EXPECT_TRUE(a.async_events().empty());
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS);
}

// -- P_Keys ----------------------------------------------------------------------------------------------------------

class Partitions : public Tables {
 protected:
  Partitions() {
    config_a.ports[0].pkeys = {0xffff, 0x8001, 0x0002, 0x8003};
    config_b.ports[0].pkeys = {0x8001, 0xffff, 0x8002, 0x0003};
  }
  ibv_wc_status write_with(std::uint16_t index_of_a, std::uint16_t index_of_b) {
    for (Side* side : {&a, &b}) EXPECT_EQ(modify_to(*side, IBV_QPS_RESET), 0);
    to_init(a, index_of_a);
    to_init(b, index_of_b);
    to_rtr(a, b, settings.psn_b);
    to_rtr(b, a, settings.psn_a);
    to_rts(a, settings.psn_a);
    to_rts(b, settings.psn_b);
    return write_status();
  }
};

TEST_F(Partitions, TheSameIndexMayBeAnotherPartition) {
  EXPECT_EQ(write_with(0, 0), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(b.counter("bad_pkeys"), settings.retry_cnt + 1U);
  EXPECT_EQ(write_with(1, 0), IBV_WC_SUCCESS) << "0x8001 on both sides";
  EXPECT_EQ(write_with(0, 1), IBV_WC_SUCCESS) << "0xffff on both sides";
  EXPECT_EQ(b.counter("bad_pkeys"), settings.retry_cnt + 1U);
}

TEST_F(Partitions, LimitedMembersTalkToFullOnesOnly) {
  EXPECT_EQ(write_with(2, 2), IBV_WC_SUCCESS) << "limited to full";
  EXPECT_EQ(write_with(3, 3), IBV_WC_SUCCESS) << "full to limited";
  b.control().set_pkey(1, 2, 0x0002);
  EXPECT_EQ(write_with(2, 2), IBV_WC_RETRY_EXC_ERR) << "limited to limited";
  EXPECT_GT(b.counter("bad_pkeys"), 0U);
}

// -- marks -----------------------------------------------------------------------------------------------------------

TEST_F(Tables, PacketsMarkedOtherwiseThanThoseThatGoBackAreCounted) {
  const auto write_with_classes = [&](std::uint8_t class_of_a, std::uint8_t class_of_b) {
    for (Side* side : {&a, &b}) {
      EXPECT_EQ(modify_to(*side, IBV_QPS_RESET), 0);
      to_init(*side);
    }
    settings.traffic_class = class_of_a;
    to_rtr(a, b, settings.psn_b);
    settings.traffic_class = class_of_b;
    to_rtr(b, a, settings.psn_a);
    to_rts(a, settings.psn_a);
    to_rts(b, settings.psn_b);
    return write_status();
  };
  EXPECT_EQ(write_with_classes(106, 106), IBV_WC_SUCCESS);
  EXPECT_EQ(a.counter("uneven_marks") + b.counter("uneven_marks"), 0U);
  EXPECT_EQ(write_with_classes(106, 0), IBV_WC_SUCCESS);
  EXPECT_EQ(b.counter("uneven_marks"), 1U) << "the write";
  EXPECT_EQ(a.counter("uneven_marks"), 1U) << "its acknowledgement";
}

TEST_F(Partitions, ChangedPkeyIsToldWithItsPort) {
  a.control().set_pkey(2, 1, 0x8007);
  expect_one_event(a, IBV_EVENT_PKEY_CHANGE, 2);
  std::uint16_t pkey = 0;
  EXPECT_EQ(a.context->query_pkey(2, 1, pkey), 0);
  EXPECT_EQ(pkey, 0x8007);
  EXPECT_EQ(a.context->query_pkey(2, 2, pkey), EINVAL);
  EXPECT_EQ(port_of(a, 2).pkey_tbl_len, 2);
  EXPECT_EQ(port_of(a, 1).pkey_tbl_len, 4);

  a.control().set_pkey(1, 1, 0);
  ASSERT_EQ(modify_to(a, IBV_QPS_RESET), 0);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.pkey_index = 1;
  EXPECT_EQ(
      a.context->modify_qp(a.qp, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
      EINVAL)
      << "an emptied entry";
}

// -- ports -----------------------------------------------------------------------------------------------------------

TEST_F(Tables, PortDownLosesPacketsUntilItIsUpAgain) {
  b.control().set_port_active(1, false);
  expect_one_event(b, IBV_EVENT_PORT_ERR, 1);
  EXPECT_EQ(port_of(b, 1).state, IBV_PORT_DOWN);
  EXPECT_EQ(port_of(b, 2).state, IBV_PORT_ACTIVE);
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 100, b, 0), 0);
  network.run_for(microseconds(100));
  EXPECT_TRUE(polled(a).empty());
  EXPECT_GT(b.counter("dropped"), 0U);
  b.control().set_port_active(1, true);
  expect_one_event(b, IBV_EVENT_PORT_ACTIVE, 1);
  EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS) << "sent again after the outage";
}

TEST_F(Tables, NothingLeavesThroughAPortThatIsDown) {
  a.control().set_port_active(1, false);
  const std::uint64_t received = b.counter("packets_received");
  EXPECT_EQ(write_status(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(b.counter("packets_received"), received);
}

TEST_F(Tables, OnlyTheNamedPortIsMeant) {
  for (Side* side : {&a, &b}) {
    side->control().set_port_active(2, false);
    expect_one_event(*side, IBV_EVENT_PORT_ERR, 2);
    side->control().set_port_active(2, false);
    EXPECT_TRUE(side->async_events().empty()) << "it was down before";
  }
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(a.counter("timeouts"), 0U);
}

TEST_F(Tables, TheSecondPortCarriesTrafficOfItsOwn) {
  settings.port = 2;
  for (Side* side : {&a, &b}) {
    ASSERT_EQ(modify_to(*side, IBV_QPS_RESET), 0);
    to_init(*side);
  }
  ASSERT_EQ(try_rtr(a, gids_of(b, 2).at(1).gid, b.qp->qp_num, settings.psn_b), 0);
  ASSERT_EQ(try_rtr(b, gids_of(a, 2).at(1).gid, a.qp->qp_num, settings.psn_a), 0);
  to_rts(a, settings.psn_a);
  to_rts(b, settings.psn_b);
  a.control().set_port_active(1, false);
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS);
  a.control().set_port_active(2, false);
  EXPECT_EQ(write_status(), IBV_WC_RETRY_EXC_ERR);
}

TEST_F(Tables, ChangedMtuBindsTheNextConnection) {
  a.control().set_active_mtu(1, IBV_MTU_512);
  expect_one_event(a, IBV_EVENT_PORT_ACTIVE, 1);
  EXPECT_EQ(port_of(a, 1).active_mtu, IBV_MTU_512);
  EXPECT_EQ(port_of(a, 2).active_mtu, IBV_MTU_4096);
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS) << "connected before, with 1024";
  ASSERT_EQ(modify_to(a, IBV_QPS_RESET), 0);
  to_init(a);
  EXPECT_EQ(try_rtr(a, b.gid(), b.qp->qp_num, 0), EINVAL) << "1024";
  settings.mtu = IBV_MTU_512;
  EXPECT_EQ(try_rtr(a, b.gid(), b.qp->qp_num, 0), 0);
}

TEST_F(Tables, MtuOfAPortThatIsDownDoesNotBringItUp) {
  a.control().set_port_active(1, false);
  (void)a.async_events();
  a.control().set_active_mtu(1, IBV_MTU_512);
  EXPECT_TRUE(a.async_events().empty()) << "PORT_ACTIVE of a port that is down";
  EXPECT_EQ(port_of(a, 1).active_mtu, IBV_MTU_512);
}

// Packets of another size than agreed are refused, not cut.
TEST_F(Tables, EndsOfDifferentMtuFindOut) {
  for (Side* side : {&a, &b}) {
    ASSERT_EQ(modify_to(*side, IBV_QPS_RESET), 0);
    to_init(*side);
  }
  settings.mtu = IBV_MTU_4096;
  to_rtr(a, b, settings.psn_b);
  settings.mtu = IBV_MTU_1024;
  to_rtr(b, a, settings.psn_a);
  to_rts(a, settings.psn_a);
  to_rts(b, settings.psn_b);
  EXPECT_EQ(write_status(), IBV_WC_SUCCESS) << "small ones fit both";
  ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 5000, b, 0), 0);
  EXPECT_EQ(completion(a).status, IBV_WC_REM_INV_REQ_ERR);
}

// -- what packets carry ----------------------------------------------------------------------------------------------

TEST(PacketMarks, ServiceLevelTrafficClassHopLimitAndPkeyAreOnEachPacketBothWays) {
  Hub hub;
  Pair pair;
  pair.open_device = [&](const DeviceConfig& config) { return hub.open(config); };
  pair.config_a.ports[0].pkeys = pair.config_b.ports[0].pkeys = {0x8123};
  pair.settings.service_level = 3;
  pair.settings.traffic_class = 106;
  pair.open();
  for (int round = 0; round < 2; ++round) {
    if (round == 0) {
      pair.connect();
    } else {
      pair.reconnect(pair.settings);  // and after a recovery
    }
    hub.sent.clear();
    ASSERT_EQ(Pair::post_receive(pair.b, 1, 0, 4096), 0);
    ASSERT_EQ(Pair::post_send(pair.a, 2, 0, 3000), 0);
    ASSERT_EQ(Pair::post_rdma(pair.a, 3, IBV_WR_RDMA_READ, 0, 3000, pair.b, 0), 0);
    for (int turn = 0; turn < 5; ++turn) hub.turn();
    EXPECT_EQ(Pair::polled(pair.a).size(), 2U);
    EXPECT_EQ(Pair::polled(pair.b).size(), 1U);
    std::size_t answers = 0;
    ASSERT_FALSE(hub.sent.empty());
    for (const PacketHeader& header : hub.sent) {
      EXPECT_EQ(header.service_level, 3);
      EXPECT_EQ(header.traffic_class, 106);
      EXPECT_EQ(header.hop_limit(), 64);
      EXPECT_EQ(header.pkey, 0x8123);
      if (header.kind == PacketKind::acknowledge || header.kind == PacketKind::read_response) ++answers;
    }
    EXPECT_GE(answers, 1U) << "b's packets are among them";
  }
  Pair::close(pair.a);
  Pair::close(pair.b);
}

// -- which GID would be chosen ---------------------------------------------------------------------------------------

// Devices with these tables, chosen from by the rules, then connected with what was chosen.
class GidTables : public ::testing::Test, protected Pair {
 protected:
  void open_with(std::vector<GidConfig> of_a, std::vector<GidConfig> of_b) {
    config_a.ports[0].gids = std::move(of_a);
    config_b.ports[0].gids = std::move(of_b);
    open();
  }
  static device::Selection chosen(Side& side, std::optional<std::uint32_t> index = std::nullopt) {
    device::Inventory inventory;
    inventory.devices.push_back(device::describe(*side.context, device::ProviderKind::soft, "/nonexistent"));
    return device::select(inventory, device::parse_selection_rule("auto", index));
  }
  void expect_works(std::uint32_t index) {
    EXPECT_EQ(chosen(a).gid.entry.index, index);
    EXPECT_EQ(chosen(b).gid.entry.index, index);
    const auto sgid_index = static_cast<std::uint8_t>(index);
    for (Side* side : {&a, &b}) to_init(*side);
    ASSERT_EQ(try_rtr(a, config_b.ports[0].gids[index].gid, b.qp->qp_num, settings.psn_b, sgid_index), 0);
    ASSERT_EQ(try_rtr(b, config_a.ports[0].gids[index].gid, a.qp->qp_num, settings.psn_a, sgid_index), 0);
    to_rts(a, settings.psn_a);
    to_rts(b, settings.psn_b);
    ASSERT_EQ(post_rdma(a, 1, IBV_WR_RDMA_WRITE, 0, 100, b, 0), 0);
    EXPECT_EQ(completion(a).status, IBV_WC_SUCCESS);
  }
};

constexpr auto v1 = IBV_GID_TYPE_ROCE_V1;
constexpr auto v2 = IBV_GID_TYPE_ROCE_V2;

TEST_F(GidTables, RoutableVersionTwoBeforeAllOthers) {
  // One address has two entries, as it has on hardware: a version 1 one and a version 2 one.
  open_with(
      {gid_of("fe80::1", v1), gid_of("fe80::1", v2), gid_of("::ffff:10.0.0.1", v1), gid_of("::ffff:10.0.0.1", v2)},
      {gid_of("fe80::2", v1), gid_of("fe80::2", v2), gid_of("::ffff:10.0.0.2", v1), gid_of("::ffff:10.0.0.2", v2)});
  expect_works(3);
}

TEST_F(GidTables, RoutableBeforeLinkLocal) {
  open_with({gid_of("fe80::1"), gid_of("::ffff:10.0.0.1")}, {gid_of("fe80::2"), gid_of("::ffff:10.0.0.2")});
  expect_works(1);
}

TEST_F(GidTables, HostsWithIpv6OnlyWork) {
  open_with({gid_of("fe80::1"), gid_of("2001:db8::1")}, {gid_of("fe80::2"), gid_of("2001:db8::2")});
  expect_works(1);
}

TEST_F(GidTables, IndexBeyondTheTableIsAnError) {
  open_with(
      {gid_of("fe80::1", v1), gid_of("fe80::1", v2), gid_of("::ffff:10.0.0.1", v1), gid_of("::ffff:10.0.0.1", v2)},
      {gid_of("fe80::2")});
  try {
    (void)chosen(a, 9);
    FAIL() << "index 9 of 4 was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(error.what()).find('9'), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("::ffff:10.0.0.1"), std::string::npos)
        << "what there is: " << error.what();
  }
}

}  // namespace
}  // namespace verbatim::soft::testing
