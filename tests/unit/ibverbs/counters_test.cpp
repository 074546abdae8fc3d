#include "device/ibverbs/counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/device/fake_sysfs.hpp"

namespace verbatim::device {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

TEST(Counters, AreThoseOfTheDriverThenThoseOfThePort) {
  const FakeSysfs sysfs;
  sysfs.write("class/infiniband/rxe0/ports/1/hw_counters/send_rnr_err", "3\n");
  sysfs.write("class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts", "18446744073709551615\n");
  sysfs.write("class/infiniband/rxe0/ports/1/counters/port_xmit_data", "12\n");
  sysfs.write("class/infiniband/rxe0/ports/2/hw_counters/rcvd_pkts", "7\n");
  EXPECT_THAT(
      read_counters(sysfs.root(), "rxe0", 1),
      ElementsAre(FieldsAre("rcvd_pkts", ~0ull), FieldsAre("send_rnr_err", 3u), FieldsAre("port_xmit_data", 12u)));
}

TEST(Counters, LeaveOutWhatIsNoCount) {
  const FakeSysfs sysfs;
  sysfs.write("class/infiniband/mlx5_0/ports/1/hw_counters/lifespan", "10\n");
  sysfs.write("class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors", "N/A (no PMA)\n");
  EXPECT_THAT(read_counters(sysfs.root(), "mlx5_0", 1), IsEmpty());
}

TEST(Counters, AreNoneWhereTheKernelHasNone) {
  EXPECT_THAT(read_counters(FakeSysfs().root(), "rxe0", 1), IsEmpty());
}

}  // namespace
}  // namespace verbatim::device
