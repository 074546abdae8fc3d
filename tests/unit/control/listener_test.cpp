// Which address a listener tells its peers.
#include "transport/host/listener.hpp"

#include <gtest/gtest.h>

#include "verbatim/error.hpp"

namespace verbatim::transport::host {
namespace {

SocketAddress number(const std::string& host, std::uint16_t port = 0) {
  return SocketAddress::numeric(host, port).value();
}

std::string advertised(const std::string& bound, const std::vector<std::string>& own) {
  std::vector<SocketAddress> addresses;
  for (const std::string& one : own) addresses.push_back(number(one));
  return choose_advertised(number(bound, 7000), addresses).to_string();
}

TEST(Advertised, IsWhatWasAskedFor) {
  EXPECT_EQ(advertised("10.0.0.9", {"10.0.0.1"}), "10.0.0.9:7000");
  EXPECT_EQ(advertised("127.0.0.1", {"10.0.0.1"}), "127.0.0.1:7000");
}

TEST(Advertised, IsNeverTheLoopbackWhereThereIsAnother) {
  EXPECT_EQ(advertised("::", {"127.0.0.1", "::1", "127.0.1.1", "10.0.0.1"}), "10.0.0.1:7000");
  EXPECT_EQ(advertised("0.0.0.0", {"127.0.1.1", "169.254.3.4"}), "169.254.3.4:7000");
  EXPECT_EQ(advertised("::", {"127.0.0.1", "2001:db8::7"}), "[2001:db8::7]:7000");
}

TEST(Advertised, PrefersWhatIsRoutedAndComesFirst) {
  EXPECT_EQ(advertised("::", {"169.254.3.4", "fe80::1", "2001:db8::7", "192.168.1.1", "10.0.0.1"}), "192.168.1.1:7000");
  EXPECT_EQ(advertised("::", {"fe80::1", "2001:db8::7"}), "[2001:db8::7]:7000");
}

TEST(Advertised, HasTheFamilyThatIsListenedOn) {
  EXPECT_EQ(advertised("0.0.0.0", {"2001:db8::7", "127.0.0.1"}), "127.0.0.1:7000");
}

TEST(Advertised, IsTheLoopbackOnAHostWithoutNetwork) {
  EXPECT_EQ(advertised("::", {"127.0.0.1"}), "127.0.0.1:7000");
  EXPECT_EQ(advertised("::", {}), "127.0.0.1:7000");
}

TEST(Listener, ANameThatMeansOnlyTheLoopbackStandsForEveryAddress) {
  const LookUp debian = [](const std::string&) { return LookUpAnswer{{number("127.0.1.1")}, ""}; };
  EXPECT_TRUE(open_listener("thishost", 0, 0, debian).bound.is_any());
  EXPECT_TRUE(open_listener("localhost", 0, 0, debian).bound.is_loopback());
}

TEST(Listener, ANumberNeedsNoLookUp) {
  const LookUp none = [](const std::string& host) -> LookUpAnswer {
    ADD_FAILURE() << host << " was looked up";
    return {};
  };
  EXPECT_TRUE(open_listener("127.0.0.1", 0, 0, none).bound.is_loopback());
  EXPECT_TRUE(open_listener("", 0, 0, none).bound.is_any());
}

TEST(Listener, AnUnknownNameIsRefusedWithTheName) {
  try {
    (void)open_listener("misspelt.example", 0, 0, [](const std::string&) {
      return LookUpAnswer{{}, "Name not known"};
    });
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(error.what()).find("\"misspelt.example\""), std::string::npos);
  }
}

}  // namespace
}  // namespace verbatim::transport::host
