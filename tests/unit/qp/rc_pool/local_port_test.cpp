#include "qp/local_port.hpp"

#include "unit/qp/rc_pool/two_workers.hpp"

namespace verbatim::qp::testing {
namespace {

class LocalPorts : public ::testing::Test {
 protected:
  LocalPort read(const soft::DeviceConfig& config, std::uint16_t pkey = 0xffff, std::uint32_t gid_index = 1) {
    const auto context = soft::open_sim(network, config);
    auto selection = first_port();
    selection.gid.entry.index = gid_index;
    return read_local_port(*context, selection, pkey);
  }
  soft::SimNetwork network;
};

soft::DeviceConfig with_pkeys(std::vector<std::uint16_t> pkeys) {
  soft::DeviceConfig config;
  config.ports.front().pkeys = std::move(pkeys);
  return config;
}

TEST_F(LocalPorts, TellWhatTheDeviceHas) {
  soft::DeviceConfig config;
  config.ports.front().active_mtu = IBV_MTU_1024;
  config.limits.max_rd_atomic = 5;
  config.limits.max_dest_rd_atomic = 7;
  config.limits.max_msg_bytes = 1 << 20;
  const auto port = read(config);
  EXPECT_EQ(port.device, "soft0");
  EXPECT_EQ(port.link_layer, device::LinkLayer::ethernet);
  EXPECT_EQ(port.address.gid_type, device::GidType::roce_v2);
  EXPECT_NE(port.address.gid, device::Gid{});
  EXPECT_EQ(port.gid_index, 1);
  EXPECT_EQ(port.active_mtu_bytes, 1024U);
  EXPECT_EQ(port.max_message_bytes, 1U << 20);
  EXPECT_EQ(port.initiator_depth, 5);
  EXPECT_EQ(port.responder_resources, 7);
}

TEST_F(LocalPorts, FindThePkeyByItsValue) {
  EXPECT_EQ(read(with_pkeys({0xffff, 0x8001}), 0x8001).pkey_index, 1);
  EXPECT_EQ(read(with_pkeys({0x8001, 0xffff}), 0x8001).pkey_index, 0);
}

TEST_F(LocalPorts, ListWhatThereIsWhereSomethingIsMissing) {
  const auto pkey = refusal(ErrorCode::not_found, [&] { (void)read(with_pkeys({0xffff, 0, 0x8001}), 0x8002); });
  EXPECT_NE(pkey.find("0x8002; it has: 0xffff, 0x8001"), std::string::npos) << pkey;
  const auto gid = refusal(ErrorCode::not_found, [&] { (void)read({}, 0xffff, 9); });
  EXPECT_NE(gid.find("at index 9; it has some at: 0, 1"), std::string::npos) << gid;
}

TEST_F(LocalPorts, LeadToAPeerWithAGlobalRouteOnEthernet) {
  const auto here = read({});
  const auto there = read({});
  const PacketMarks marks{.service_level = 3, .traffic_class = 106, .flow_label = 0x12345, .hop_limit = 7};
  const auto path = path_to(here, there.address, marks);
  EXPECT_EQ(path.port, PortNumber{1});
  EXPECT_EQ(path.service_level, 3);
  ASSERT_TRUE(path.route);
  EXPECT_EQ(std::memcmp(path.route->destination.raw, there.address.gid.bytes.data(), 16), 0);
  EXPECT_EQ(path.route->source_gid_index, 1);
  EXPECT_EQ(path.route->traffic_class, 106);
  EXPECT_EQ(path.route->flow_label, 0x12345U);
  EXPECT_EQ(path.route->hop_limit, 7);
}

TEST_F(LocalPorts, LeadToAPeerByLidAloneWithinAnInfinibandSubnet) {
  LocalPort here;
  here.link_layer = device::LinkLayer::infiniband;
  here.address = {.gid = {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1}}, .gid_type = device::GidType::infiniband, .lid = 1};
  PortAddress there{.gid = {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2}}, .gid_type = device::GidType::infiniband, .lid = 2};
  EXPECT_FALSE(path_to(here, there, {}).route);
  EXPECT_EQ(path_to(here, there, {}).destination_lid, 2);
  there.gid.bytes[7] = 1;
  EXPECT_TRUE(path_to(here, there, {}).route) << "in another subnet";
}

TEST_F(LocalPorts, RefuseAPeerWithAnotherTypeOfGid) {
  auto there = read({}).address;
  there.gid_type = device::GidType::roce_v1;
  const auto sentence = refusal(ErrorCode::invalid_argument, [&] { (void)path_to(read({}), there, {}); });
  EXPECT_NE(sentence.find("RoCE v2"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("RoCE v1"), std::string::npos) << sentence;
}

}  // namespace
}  // namespace verbatim::qp::testing
