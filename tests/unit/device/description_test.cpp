#include "device/description.hpp"

#include <endian.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "unit/device/descriptions.hpp"
#include "unit/device/fake_context.hpp"
#include "unit/device/fake_sysfs.hpp"

namespace verbatim::device {
namespace {

ibv_gid_entry gid_entry(const std::string& address, std::uint32_t index, std::uint32_t port, ibv_gid_type type) {
  ibv_gid_entry entry{};
  const auto bytes = gid(address).bytes;
  std::memcpy(entry.gid.raw, bytes.data(), bytes.size());
  entry.gid_index = index;
  entry.port_num = port;
  entry.gid_type = type;
  entry.ndev_ifindex = 1;  // lo, which every host has
  return entry;
}

// Two ports: Ethernet that is up, InfiniBand that is down.
class DescriptionTest : public ::testing::Test {
 protected:
  DescriptionTest() {
    auto& attributes = context.attributes.orig_attr;
    std::strcpy(attributes.fw_ver, "20.31.1014");
    attributes.node_guid = htobe64(0x0002c90300a1b2c3);
    attributes.phys_port_cnt = 2;
    attributes.max_qp = 100;
    attributes.max_cqe = -1;
    attributes.max_mr_size = 1ull << 40;
    attributes.max_qp_rd_atom = 16;
    attributes.max_qp_init_rd_atom = 8;
    attributes.atomic_cap = IBV_ATOMIC_GLOB;

    ibv_port_attr ethernet{};
    ethernet.state = IBV_PORT_ACTIVE;
    ethernet.link_layer = IBV_LINK_LAYER_ETHERNET;
    ethernet.active_mtu = IBV_MTU_1024;
    ethernet.max_mtu = IBV_MTU_4096;
    ethernet.max_msg_sz = 1u << 30;
    ethernet.gid_tbl_len = 16;
    ethernet.pkey_tbl_len = 1;
    ibv_port_attr infiniband{};
    infiniband.state = IBV_PORT_DOWN;
    infiniband.link_layer = IBV_LINK_LAYER_INFINIBAND;
    infiniband.lid = 7;
    infiniband.gid_tbl_len = 1;
    infiniband.pkey_tbl_len = 3;
    context.ports = {ethernet, infiniband};
    context.gids = {gid_entry("fe80::2", 0, 2, IBV_GID_TYPE_IB),
                    gid_entry("::ffff:10.0.0.1", 3, 1, IBV_GID_TYPE_ROCE_V2),
                    gid_entry("fe80::1", 0, 1, IBV_GID_TYPE_ROCE_V1)};
    context.pkeys = {{1, {0xffff}}, {2, {0x7fff, 0, 0x8001}}};
  }

  DeviceDescription description(ProviderKind provider = ProviderKind::soft) {
    return describe(context, provider, sysfs.root());
  }

  FakeSysfs sysfs;
  FakeContext context{"fake0"};
};

TEST_F(DescriptionTest, SaysWhatTheDeviceIs) {
  const auto device = description();
  EXPECT_EQ(device.name, "fake0");
  EXPECT_EQ(device.provider, ProviderKind::soft);
  EXPECT_EQ(device.node_guid, 0x0002c90300a1b2c3u);
  EXPECT_EQ(device.firmware, "20.31.1014");
  EXPECT_FALSE(device.mlx5);
  EXPECT_EQ(device.limits.max_qp, 100u);
  EXPECT_EQ(device.limits.max_cqe, 0u);
  EXPECT_EQ(device.limits.max_mr_bytes, 1ull << 40);
  EXPECT_EQ(device.limits.max_rd_atomic, 8u);
  EXPECT_EQ(device.limits.max_dest_rd_atomic, 16u);
  EXPECT_EQ(device.limits.atomics, AtomicScope::system);
}

TEST_F(DescriptionTest, SaysWhatThePortsAre) {
  const auto device = description();
  ASSERT_EQ(device.ports.size(), 2u);
  const auto& ethernet = device.ports[0];
  EXPECT_EQ(ethernet.number, PortNumber{1});
  EXPECT_TRUE(is_active(ethernet));
  EXPECT_EQ(ethernet.link_layer, LinkLayer::ethernet);
  EXPECT_EQ(ethernet.active_mtu_bytes, 1024u);
  EXPECT_EQ(ethernet.max_mtu_bytes, 4096u);
  EXPECT_EQ(ethernet.max_message_bytes, 1u << 30);
  EXPECT_EQ(ethernet.gid_table_length, 16u);
  const auto& infiniband = device.ports[1];
  EXPECT_EQ(infiniband.number, PortNumber{2});
  EXPECT_FALSE(is_active(infiniband));
  EXPECT_EQ(infiniband.link_layer, LinkLayer::infiniband);
  EXPECT_EQ(infiniband.lid, 7u);
}

TEST_F(DescriptionTest, GivesEachPortItsOwnGidsByIndex) {
  const auto device = description();
  ASSERT_EQ(device.ports[0].gids.size(), 2u);
  EXPECT_EQ(device.ports[0].gids[0].index, 0u);
  EXPECT_EQ(device.ports[0].gids[0].type, GidType::roce_v1);
  EXPECT_EQ(device.ports[0].gids[1].index, 3u);
  EXPECT_EQ(device.ports[0].gids[1].gid, gid("::ffff:10.0.0.1"));
  EXPECT_EQ(device.ports[0].gids[1].network_device, "lo");
  ASSERT_EQ(device.ports[1].gids.size(), 1u);
  EXPECT_EQ(device.ports[1].gids[0].type, GidType::infiniband);
}

TEST_F(DescriptionTest, LeavesOutEmptyPkeys) {
  const auto pkeys = description().ports[1].pkeys;
  ASSERT_EQ(pkeys.size(), 2u);
  EXPECT_EQ(pkeys[0].index, 0u);
  EXPECT_EQ(pkeys[0].value, 0x7fffu);
  EXPECT_EQ(pkeys[1].index, 2u);
  EXPECT_EQ(pkeys[1].value, 0x8001u);
}

TEST_F(DescriptionTest, CarriesOnWithoutPlacement) {
  EXPECT_EQ(description().placement.numa_node, std::nullopt);
}

TEST_F(DescriptionTest, TakesFirmwareThatFillsItsField) {
  std::memset(context.attributes.orig_attr.fw_ver, 'x', sizeof context.attributes.orig_attr.fw_ver);
  EXPECT_EQ(description().firmware, std::string(64, 'x'));
}

TEST_F(DescriptionTest, SaysWhatTheDeviceDoesNotAnswer) {
  context.query_device_result = EIO;
  try {
    (void)description();
    FAIL() << "described a device that gives no answer";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_failure);
    EXPECT_STREQ(error.what(), "fake0 does not say what it can do: Input/output error");
  }
}

}  // namespace
}  // namespace verbatim::device
