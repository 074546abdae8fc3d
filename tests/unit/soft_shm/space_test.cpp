// A file system that is too small: an error with numbers when something is made, never a signal later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "base/error.hpp"
#include "base/units.hpp"
#include "unit/soft_shm/support.hpp"

namespace verbatim::soft::shm {
namespace {

using ::testing::HasSubstr;

// A tmpfs of its own size, in a mount namespace's worth of privacy: a directory of the test.
class SmallFileSystem {
 public:
  // `size` as tmpfs takes it; other options may follow.
  explicit SmallFileSystem(const std::string& size) {
    mounted_ = ::mount("none", directory_.path().c_str(), "tmpfs", 0, ("mode=0700,size=" + size).c_str()) == 0;
  }
  SmallFileSystem(const SmallFileSystem&) = delete;
  SmallFileSystem& operator=(const SmallFileSystem&) = delete;
  ~SmallFileSystem() {
    if (mounted_) ::umount(directory_.path().c_str());
  }
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] const TemporaryDirectory& directory() const { return directory_; }

 private:
  TemporaryDirectory directory_;
  bool mounted_ = false;
};

TEST(Space, TooLittleForADeviceIsSaidWithNumbers) {
  const SmallFileSystem small("64k");
  if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs needs root";
  try {
    open_wire(config_in(small.directory()), gid(1));
    FAIL() << "a device of half a MiB fits into 64 KiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_space);
    EXPECT_THAT(error.what(), HasSubstr("needs " + format_size(sizeof(Instance))));
    EXPECT_THAT(error.what(), HasSubstr("available in " + small.directory().path()));
  }
  EXPECT_EQ(small.directory().names(), std::vector<std::string>{"lock"}) << "the refused device left something behind";
}

TEST(Space, TooLittleForTheDirectoryIsNotAQuestionOfPermission) {
  const SmallFileSystem full("64k,nr_inodes=1");
  if (!full.mounted()) GTEST_SKIP() << "mounting a tmpfs needs root";
  try {
    const Directory directory(full.directory().path() + "/devices");
    FAIL() << "a file system with one inode has room for another directory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_space);
  }
}

TEST(Space, TooLittleForARingIsSaidWithNumbersAndTheDeviceLivesOn) {
  const SmallFileSystem small("1m");
  if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs needs root";
  const auto wire = open_wire(config_in(small.directory(), 1U << 20), gid(1));
  try {
    static_cast<void>(wire->path_to(gid(1), gid(1)));
    FAIL() << "a ring of 1 MiB fits beside a device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_space);
    EXPECT_THAT(error.what(), HasSubstr("needs "));
  }
  EXPECT_EQ(wire->receive(now()), nullptr);
}

TEST(Space, MappableMemoryTakesWhatThereIsAndNoMore) {
  const SmallFileSystem small("1m");
  if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs needs root";
  const auto wire = open_wire(config_in(small.directory()), gid(1));
  const device::Memory fits = wire->allocate(100'000);
  ASSERT_TRUE(fits) << "a segment of the usual size is too large, one of just this size is not";
  std::memset(fits.address, 1, fits.bytes);
  errno = 0;
  EXPECT_FALSE(wire->allocate(std::size_t{1} << 20));
  EXPECT_EQ(errno, ENOMEM);
  wire->deallocate(fits);
}

}  // namespace
}  // namespace verbatim::soft::shm
