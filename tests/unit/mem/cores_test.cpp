#include "mem/cores.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "base/error.hpp"
#include "mem/topology.hpp"
#include "unit/device/fake_sysfs.hpp"
#include "unit/mem/captured_log.hpp"
#include "unit/mem/child.hpp"

namespace verbatim::mem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(OrderByCore, TakesEveryCoreBeforeASecondThreadOfOne) {
  const std::vector<std::vector<int>> cores = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  EXPECT_THAT(order_by_core(cores, {0, 1, 2, 3, 4, 5, 6, 7}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(order_by_core({{0, 1}, {2, 3}}, {0, 1, 2, 3}), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(order_by_core({{0, 1}, {2, 3}}, {1, 2, 3}), ElementsAre(1, 2, 3));
  EXPECT_THAT(order_by_core(cores, {2, 4}), ElementsAre(4, 2));
}

TEST(OrderByCore, LosesNoThreadThatNoCoreLists) {
  EXPECT_THAT(order_by_core({}, {5, 6}), ElementsAre(5, 6));
  EXPECT_THAT(order_by_core({{0}}, {0, 9}), ElementsAre(0, 9));
  EXPECT_THAT(order_by_core({{0}}, {}), IsEmpty());
}

// A thread that may run on the last of its processors only.
template <typename Body>
void on_one_processor(Body body) {
  std::thread([&] {
    const int only = read_allowed_cpus().back();
    pin_this_thread(only);
    body(only);
  }).join();
}

TEST(ChooseCores, KeepsToWhatTheThreadMayRunOn) {
  const auto all = read_allowed_cpus();
  on_one_processor([&](int only) { EXPECT_THAT(choose_cores({0, all}), ElementsAre(only)); });
  EXPECT_THAT(choose_cores({0, all}), ::testing::UnorderedElementsAreArray(all));
  EXPECT_THAT(choose_cores({0, {all.front()}}), ElementsAre(all.front()));
}

TEST(ChooseCores, TakesAllWhereTheNodeIsUnknownAndSaysNothing) {
  const CapturedLog said;
  for (const auto* node : {"-1\n", "7\n", "\n", "abc\n"}) {
    const device::FakeSysfs sysfs;
    sysfs.write("class/infiniband/mlx5_0/device/numa_node", node);
    EXPECT_THAT(choose_cores(device::find_placement("mlx5_0", sysfs.root())),
                ::testing::UnorderedElementsAreArray(read_allowed_cpus()))
        << node;
  }
  EXPECT_EQ(said.text(), "");
}

TEST(ChooseCores, TakesAllWithOneWarningWhereNoneOfTheNodeIsAllowed) {
  expect_in_child([] {
    const CapturedLog said;
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(choose_cores({1, {4000, 4001}}), ::testing::UnorderedElementsAreArray(read_allowed_cpus()));
    }
    EXPECT_EQ(said.lines(), 1u);
    EXPECT_THAT(said.text(), HasSubstr("(4000-4001)"));
    return true;
  });
}

TEST(PinThisThread, PinsItAndNoOther) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  on_one_processor([](int only) { EXPECT_THAT(read_allowed_cpus(), ElementsAre(only)); });
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(PinThisThread, NamesTheProcessorThatItMayNotHave) {
  for (const int wrong : {-1, 1000, 1 << 20}) {
    try {
      pin_this_thread(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::permission);
      EXPECT_THAT(error.what(), HasSubstr("processor " + std::to_string(wrong)));
    }
  }
}

}  // namespace
}  // namespace verbatim::mem
