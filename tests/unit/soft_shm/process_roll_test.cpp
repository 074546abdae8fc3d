// Who asks the kernel for dead processes, and when.
#include "device/soft/shm/process_roll.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "unit/soft_shm/support.hpp"

namespace verbatim::soft::shm {
namespace {

// A process that lives, and its identity.
struct Living {
  ChildProcess child{[] {
    ::pause();
    return 0;
  }};
  ProcessIdentity identity{.pid = child.pid(), .start_time = 0};
};

TEST(ProcessRoll, WhoPollsIsToldWhatTheHelperFound) {
  ProcessRoll roll;
  Living peer;
  EXPECT_TRUE(roll.alive(peer.identity));
  peer.child.kill();
  EXPECT_TRUE(roll.alive(peer.identity)) << "the kernel was asked by the thread that polls";
  roll.look();
  EXPECT_FALSE(roll.alive(peer.identity));
  EXPECT_FALSE(roll.alive(peer.identity));
}

TEST(ProcessRoll, OneThatIsNewLivesUntilTheNextLook) {
  ProcessRoll roll;
  Living peer;
  Living other;
  peer.child.kill();
  EXPECT_TRUE(roll.alive(peer.identity)) << "the kernel was asked by the thread that polls";
  EXPECT_TRUE(roll.alive(other.identity));
  roll.look();
  EXPECT_FALSE(roll.alive(peer.identity));
  EXPECT_TRUE(roll.alive(other.identity));
}

TEST(ProcessRoll, ForgetsWhomNobodyAskedForSinceTheLastTime) {
  ProcessRoll roll;
  Living peer;
  EXPECT_TRUE(roll.alive(peer.identity));
  roll.forget_others();
  peer.child.kill();
  roll.look();
  EXPECT_FALSE(roll.alive(peer.identity)) << "forgotten although it was asked for";
  roll.forget_others();
  roll.forget_others();
  EXPECT_TRUE(roll.alive(peer.identity)) << "not forgotten: it was taken for known";
}

}  // namespace
}  // namespace verbatim::soft::shm
