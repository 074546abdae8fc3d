#include "device/gid.hpp"

#include <gtest/gtest.h>

#include "unit/device/descriptions.hpp"

namespace verbatim::device {
namespace {

TEST(Gid, KnowsHowFarAnAddressReaches) {
  EXPECT_EQ(scope_of(gid("::ffff:10.0.0.1")), GidScope::routable);
  EXPECT_EQ(scope_of(gid("2001:db8::1")), GidScope::routable);
  EXPECT_EQ(scope_of(gid("fd00::1")), GidScope::routable);
  EXPECT_EQ(scope_of(gid("fe80::1")), GidScope::link_local);
  EXPECT_EQ(scope_of(gid("febf::1")), GidScope::link_local);
  EXPECT_EQ(scope_of(gid("fec0::1")), GidScope::routable);
  EXPECT_EQ(scope_of(gid("::ffff:169.254.3.4")), GidScope::link_local);
  EXPECT_EQ(scope_of(gid("::ffff:169.253.3.4")), GidScope::routable);
  EXPECT_EQ(scope_of(gid("::ffff:127.0.0.1")), GidScope::loopback);
  EXPECT_EQ(scope_of(gid("::1")), GidScope::loopback);
}

TEST(Gid, OnlyTheMappedPrefixIsIpv4) {
  EXPECT_TRUE(is_ipv4_mapped(gid("::ffff:10.0.0.1")));
  EXPECT_FALSE(is_ipv4_mapped(gid("::10.0.0.1")));
  EXPECT_FALSE(is_ipv4_mapped(gid("2001:db8::ffff:a00:1")));
}

TEST(Gid, IsWrittenAsAnAddress) {
  EXPECT_EQ(to_string(gid("fe80:0:0:0:0:0:0:1")), "fe80::1");
  EXPECT_EQ(to_string(gid("::ffff:a00:1")), "::ffff:10.0.0.1");
}

}  // namespace
}  // namespace verbatim::device
