#include "device/ibverbs/provider.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.hpp"

namespace verbatim::device {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(IbverbsProvider, ListsNothingWhereTheKernelHasNoRdma) {
  if (std::filesystem::exists("/sys/class/infiniband")) GTEST_SKIP() << "this kernel has RDMA";
  EXPECT_THAT(make_ibverbs_provider()->list(), IsEmpty());
}

TEST(IbverbsProvider, RefusesAnUnknownNameWithTheNamesThereAre) {
  const auto provider = make_ibverbs_provider();
  try {
    (void)provider->open("no_such_device");
    FAIL() << "opened a device that doesn't exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("there is no RDMA device 'no_such_device'; found: "));
    const auto names = provider->list();
    if (names.empty()) {
      EXPECT_THAT(error.what(), HasSubstr("found: none"));
    }
    for (const auto& name : names) EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

}  // namespace
}  // namespace verbatim::device
