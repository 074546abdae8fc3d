// The ibverbs provider, the rules and verbatim-info on the kernel's software RDMA device. Runs inside the virtual
// machine, where rxe0 has two GIDs: index 0 is link-local, 1 is 10.77.0.1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "device/async_events.hpp"
#include "device/ibverbs/provider.hpp"
#include "device/system.hpp"

namespace verbatim::device {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr const char* rxe = "rxe0";
constexpr std::size_t page_bytes = 4096;

System only_ibverbs() {
  return System(make_ibverbs_provider(), nullptr);
}

TEST(IbverbsOnRxe, ListsAndOpensTheDevice) {
  const auto provider = make_ibverbs_provider();
  EXPECT_THAT(provider->list(), ElementsAre(rxe));
  EXPECT_EQ(provider->open(rxe)->name(), rxe);
}

TEST(IbverbsOnRxe, NamesTheDeviceWhenAskedForAnother) {
  try {
    (void)make_ibverbs_provider()->open("rxe");
    FAIL() << "opened 'rxe', which is only the beginning of a name";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "there is no RDMA device 'rxe'; found: rxe0");
  }
}

TEST(IbverbsOnRxe, DescribesTheDevice) {
  const auto inventory = only_ibverbs().list();
  EXPECT_TRUE(inventory.skipped.empty());
  ASSERT_EQ(inventory.devices.size(), 1u);
  const auto& device = inventory.devices[0];
  EXPECT_NE(device.node_guid, 0u);
  EXPECT_GT(device.limits.max_qp, 0u);
  EXPECT_GT(device.limits.max_cqe, 0u);
  EXPECT_EQ(device.placement.numa_node, std::nullopt);
  EXPECT_FALSE(device.mlx5);
  ASSERT_EQ(device.ports.size(), 1u);
  const auto& port = device.ports[0];
  EXPECT_TRUE(is_active(port));
  EXPECT_EQ(port.link_layer, LinkLayer::ethernet);
  EXPECT_EQ(port.active_mtu_bytes, 1024u);
  EXPECT_EQ(port.max_mtu_bytes, 4096u);
  ASSERT_EQ(port.gids.size(), 2u);
  EXPECT_EQ(scope_of(port.gids[0].gid), GidScope::link_local);
  EXPECT_EQ(to_string(port.gids[1].gid), "::ffff:10.77.0.1");
  EXPECT_EQ(port.gids[1].type, GidType::roce_v2);
  EXPECT_EQ(port.gids[1].network_device, "dummy0");
  ASSERT_EQ(port.pkeys.size(), 1u);
  EXPECT_EQ(port.pkeys[0].value, 0xffffu);
}

TEST(IbverbsOnRxe, ChoosesTheRoutableGid) {
  auto system = only_ibverbs();
  const auto selection = select(system.list(), parse_selection_rule("auto"));
  EXPECT_EQ(selection.device, rxe);
  EXPECT_EQ(selection.port, PortNumber{1});
  EXPECT_EQ(selection.gid.entry.index, 1u);
  EXPECT_EQ(selection.gid.reason, "RoCE v2 with a routable IPv4 address, best of 2 entries");
  EXPECT_EQ(system.open(selection)->name(), rxe);
}

TEST(IbverbsOnRxe, RefusesGidsAndPortsThatAreNotThere) {
  const auto inventory = only_ibverbs().list();
  for (const auto& [rule, sentence] :
       {std::pair{parse_selection_rule("rxe0", 5), "GID index 5 of rxe0 port 1 is empty"},
        std::pair{parse_selection_rule("rxe0:2"), "device 'rxe0' has no port 2"}}) {
    try {
      (void)select(inventory, rule);
      ADD_FAILURE() << sentence;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(sentence));
    }
  }
}

TEST(IbverbsOnRxe, HasTheKernelsCounters) {
  const auto counters = make_ibverbs_provider()->open(rxe)->counters(1);
  EXPECT_THAT(counters, Contains(Field(&Counter::name, "rcvd_rnr_err")));
  EXPECT_THAT(counters, Contains(Field(&Counter::name, "send_rnr_err")));
}

TEST(IbverbsOnRxe, MakesAndDestroysObjects) {
  const auto context = make_ibverbs_provider()->open(rxe);
  auto* pd = context->alloc_pd();
  ASSERT_NE(pd, nullptr) << std::strerror(errno);
  const auto memory = context->allocate(page_bytes + 1);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory.bytes, 2 * page_bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.address) % page_bytes, 0u);
  auto* mr = context->reg_mr(pd, memory.address, memory.bytes, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr) << std::strerror(errno);
  auto* channel = context->create_comp_channel();
  ASSERT_NE(channel, nullptr);
  auto* cq = context->create_cq(16, nullptr, channel, 0);
  ASSERT_NE(cq, nullptr);
  ibv_qp_init_attr init{};
  init.send_cq = cq;
  init.recv_cq = cq;
  init.cap = {4, 4, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  auto* qp = context->create_qp(pd, init);
  ASSERT_NE(qp, nullptr);

  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  EXPECT_EQ(context->modify_qp(qp, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  EXPECT_EQ(context->query_qp(qp, attributes, IBV_QP_STATE, init), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_INIT);

  EXPECT_EQ(context->destroy_qp(qp), 0);
  EXPECT_EQ(context->destroy_cq(cq), 0);
  EXPECT_EQ(context->destroy_comp_channel(channel), 0);
  EXPECT_EQ(context->dereg_mr(mr), 0);
  context->release(memory);
  EXPECT_EQ(context->dealloc_pd(pd), 0);
}

TEST(IbverbsOnRxe, SaysWhatTheDeviceLacks) {
  const auto context = make_ibverbs_provider()->open(rxe);
  ibv_td_init_attr attributes{};
  EXPECT_EQ(context->alloc_td(attributes), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

// "name: reason" of each.
std::vector<std::string> skipped_of(const Inventory& inventory) {
  std::vector<std::string> skipped;
  for (const auto& device : inventory.skipped) skipped.push_back(device.name + ": " + device.reason);
  return skipped;
}

// Runs a command of the machine; its exit status must be 0.
std::string run(const std::string& command) {
  std::string output;
  auto* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::array<char, 4096> buffer{};
  while (const auto bytes = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), bytes);
  const int status = pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command << ": status " << status;
  return output;
}

TEST(IbverbsOnRxe, SkipsADeviceWithoutItsNode) {
  run("mv /dev/infiniband/uverbs0 /dev/infiniband/gone");
  const auto inventory = only_ibverbs().list();
  run("mv /dev/infiniband/gone /dev/infiniband/uverbs0");
  EXPECT_TRUE(inventory.devices.empty());
  EXPECT_THAT(skipped_of(inventory), ElementsAre(HasSubstr("no /dev/infiniband/uverbsN here")));
}

TEST(IbverbsOnRxe, SkipsADeviceThatThisUserMayNotOpen) {
  constexpr uid_t nobody = 65534;
  run("chmod 600 /dev/infiniband/uverbs0");
  ASSERT_EQ(seteuid(nobody), 0);
  const auto inventory = only_ibverbs().list();
  ASSERT_EQ(seteuid(0), 0);
  run("chmod 666 /dev/infiniband/uverbs0");
  EXPECT_TRUE(inventory.devices.empty());
  EXPECT_THAT(skipped_of(inventory), ElementsAre(HasSubstr("/dev/infiniband/uverbs0: Permission denied")));
}

TEST(VerbatimInfoOnRxe, WritesWhatItFindsAsJson) {
  const auto json = nlohmann::json::parse(run(VERBATIM_INFO " --json --device rxe0"));
  EXPECT_EQ(json["choice"]["device"], rxe);
  EXPECT_EQ(json["choice"]["gid"]["index"], 1);
  EXPECT_EQ(json["choice"]["gid"]["gid"], "::ffff:10.77.0.1");
  EXPECT_EQ(json["devices"][0]["ports"][0]["active_mtu"], 1024);
  EXPECT_TRUE(json["devices"][0]["numa_node"].is_null());
  EXPECT_TRUE(json["host"]["memlock"].is_null());
  EXPECT_TRUE(json["refusal"].is_null());
}

TEST(VerbatimInfoOnRxe, WritesTextForPeople) {
  const auto text = run(VERBATIM_INFO);
  EXPECT_THAT(text, HasSubstr("first RDMA port that is active"));
  std::fputs(text.c_str(), stdout);
}

// Last, because addresses come back in the kernel's own time.
TEST(PortOfRxe, TellsThatItWentDownAndUp) {
  constexpr int bound_ms = 30000;
  const auto context = make_ibverbs_provider()->open(rxe);
  std::vector<ibv_event_type> seen;
  const auto wait_for = [&](ibv_event_type wanted) {
    pollfd descriptor{context->handle()->async_fd, POLLIN, 0};
    while (std::ranges::find(seen, wanted) == seen.end()) {
      if (poll(&descriptor, 1, bound_ms) != 1) return false;
      const auto drained = drain_async_events(*context, [&](const AsyncEvent& event) {
        EXPECT_EQ(std::get<PortNumber>(event.subject), PortNumber{1});
        seen.push_back(event.type);
      });
      EXPECT_EQ(drained.problem, 0);
    }
    return true;
  };
  run("ip link set dummy0 down");
  EXPECT_TRUE(wait_for(IBV_EVENT_PORT_ERR));
  EXPECT_THROW((void)select(only_ibverbs().list(), parse_selection_rule("auto")), Error);
  run("ip link set dummy0 up");
  EXPECT_TRUE(wait_for(IBV_EVENT_PORT_ACTIVE));
}

}  // namespace
}  // namespace verbatim::device
