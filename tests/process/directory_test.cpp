// Too little shared memory, and what other processes left in it or still hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.hpp"
#include "device/soft/provider.hpp"
#include "process/support.hpp"

namespace verbatim::process {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int not_permitted = 77;

// In a child: a file system of that size over the directory, seen by this process alone. False where the system
// refuses.
bool mount_small(const std::string& path, const std::string& size) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << user << " " << user << " 1";
    std::ofstream("/proc/self/gid_map") << group << " " << group << " 1";
  }
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", path.c_str(), "tmpfs", 0, ("mode=700,size=" + size).c_str()) == 0;
}

// Runs the body on a small file system; how it ended, or not_permitted.
int on_small_file_system(const std::string& size, const std::function<int(const TemporaryDirectory&)>& body) {
  const TemporaryDirectory directory;
  ChildProcess child([&] { return mount_small(directory.path(), size) ? body(directory) : not_permitted; });
  return child.wait();
}

TEST(SmallDirectory, IsRefusedWithWhatIsNeededAndWhatThereIs) {
  const int ended = on_small_file_system("64k", [](const TemporaryDirectory& directory) {
    try {
      Node node(options_in(directory));
    } catch (const Error& error) {
      const std::string sentence = error.what();
      std::printf("%s\n", sentence.c_str());
      require(error.code() == ErrorCode::no_space, "another kind of error");
      // A page is the lock's.
      require(sentence.find("needs") != std::string::npos && sentence.find("60KiB are available") != std::string::npos,
              sentence);
      return 0;
    }
    return 1;
  });
  if (ended == not_permitted) GTEST_SKIP() << "no right to mount a small file system here";
  EXPECT_EQ(ended, 0) << "SIGBUS is -7";
}

// Room for the devices, and for little more: whatever does not fit is refused, and nothing dies of it.
TEST(SmallDirectory, RefusesWhatDoesNotFitAndGoesOn) {
  const int ended = on_small_file_system("1m", [](const TemporaryDirectory& directory) {
    NodeOptions options = options_in(directory);
    options.mappable = false;
    const auto provider = soft::make_provider(options.device);
    std::vector<std::unique_ptr<device::Context>> devices;
    try {
      for (int i = 0; i < 64; ++i) devices.push_back(provider->open(options.device.name));
      return 1;
    } catch (const Error& error) {
      require(error.code() == ErrorCode::no_space, error.what());
    }
    std::printf("%zu devices fit into 1 MiB\n", devices.size());
    if (devices.empty()) return 0;
    const device::Memory memory = devices.front()->allocate(4 << 20);
    require(!memory && errno != 0, "4 MiB of shared memory where there is not 1");
    devices.pop_back();
    // A device still opens in the room that another left, and closes.
    devices.push_back(provider->open(options.device.name));
    return 0;
  });
  if (ended == not_permitted) GTEST_SKIP() << "no right to mount a small file system here";
  EXPECT_EQ(ended, 0) << "SIGBUS is -7";
}

// Rings are made when queue pairs connect: that too is refused, with an errno value.
TEST(SmallDirectory, RefusesARingThatDoesNotFit) {
  const int ended = on_small_file_system("16m", [](const TemporaryDirectory& directory) {
    NodeOptions options = options_in(directory);
    options.mappable = false;
    options.device.ring_bytes = 64 << 20;
    Node a(options), b(options);
    try {
      a.connect(b.address());
    } catch (const std::runtime_error& error) {
      std::printf("%s\n", error.what());
      require(std::string(error.what()).find("RTR") != std::string::npos, error.what());
      return 0;
    }
    return 1;
  });
  if (ended == not_permitted) GTEST_SKIP() << "no right to mount a small file system here";
  EXPECT_EQ(ended, 0) << "SIGBUS is -7";
}

soft::GidConfig fixed_gid() {
  soft::GidConfig entry;
  entry.gid.raw[0] = 0xfd;
  entry.gid.raw[15] = 0x42;
  return entry;
}

TEST(FixedGid, OfALivingOwnerIsRefusedWithItsPid) {
  const TemporaryDirectory directory;
  NodeOptions options = options_in(directory);
  options.device.ports.front().gids = {fixed_gid()};
  const Shared<Mailbox> mailbox;
  ChildProcess owner([&] {
    Node node(options);
    mailbox->put(node.address(), 1);
    return ::pause();
  });
  (void)mailbox->take(1);
  try {
    const Node second(options);
    FAIL() << "two devices answer to one GID";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::busy);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(owner.pid())));
  }
}

TEST(FixedGid, OfADeadOwnerIsTakenOverAndNothingGrows) {
  constexpr std::uint32_t rounds = 20;
  const TemporaryDirectory directory;
  NodeOptions options = options_in(directory);
  options.device.ports.front().gids = {fixed_gid()};
  const Shared<Mailbox> mailbox;
  std::size_t names = 0;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    ChildProcess owner([&] {
      Node node(options);
      mailbox->put(node.address(), round);
      return ::pause();
    });
    (void)mailbox->take(round);
    owner.kill();
    if (round == 1) names = directory.names().size();
    EXPECT_EQ(directory.names().size(), names) << "round " << round;
  }
}

// Devices that are opened together in one directory while others die there.
TEST(Directory, WithGarbageInItIsUsedAllTheSame) {
  const TemporaryDirectory directory;
  for (const char* name : {"instance-0123456789abcdef", "gid-00", "ring-x", "segment-0123456789abcdef-1"}) {
    std::ofstream(directory.path() + "/" + name) << "garbage";
  }
  std::ofstream(directory.path() + "/instance-0123456789abcde0").close();
  NodeOptions options = options_in(directory);
  Node a(options), b(options);
  a.connect(b.address());
  b.connect(a.address());
  ASSERT_EQ(b.receive(1, 0, 64), 0);
  ASSERT_EQ(a.send(2, 0, 64), 0);
  b.finish(1, patience);
  a.finish(2, patience);
}

}  // namespace
}  // namespace verbatim::process
