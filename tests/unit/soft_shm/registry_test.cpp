#include "device/soft/shm/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/error.hpp"
#include "unit/soft_shm/support.hpp"

namespace verbatim::soft::shm {
namespace {

using ::testing::HasSubstr;

ErrorCode code_of(const std::function<void()>& action, std::string* sentence = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (sentence != nullptr) *sentence = error.what();
    return error.code();
  }
  ADD_FAILURE() << "nothing was refused";
  return ErrorCode::unsupported;
}

class RegistryTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::uintmax_t bytes_used() const {
    std::uintmax_t bytes = 0;
    for (const std::string& name : directory_.names()) {
      struct stat status {};
      ::stat((directory_.path() + "/" + name).c_str(), &status);
      bytes += static_cast<std::uintmax_t>(status.st_blocks) * 512 / status.st_nlink;
    }
    return bytes;
  }
  [[nodiscard]] std::string gid_file() const { return directory_.path() + "/" + gid_name(gid(1)); }

  TemporaryDirectory directory_;
};

TEST_F(RegistryTest, AnOpenedDeviceIsFoundByGidAndGoneAfterwards) {
  const Registry registry(directory_.path());
  {
    const auto wire = open_wire(config_in(directory_), gid(1));
    const auto found = registry.find(gid(1));
    ASSERT_TRUE(found);
    EXPECT_EQ(reinterpret_cast<const Instance*>(found->data())->owner_pid, ::getpid());
    EXPECT_FALSE(registry.find(gid(2)));
  }
  EXPECT_FALSE(registry.find(gid(1)));
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"lock"});
}

TEST_F(RegistryTest, AGidOfALivingProcessIsRefusedWithItsPid) {
  SharedWords words;
  ChildProcess other([&] {
    const auto wire = open_wire(config_in(directory_), gid(1));
    words[0] = 1;
    ::pause();
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return words[0] == 1; }));
  std::string sentence;
  EXPECT_EQ(code_of([&] { open_wire(config_in(directory_), gid(1)); }, &sentence), ErrorCode::busy);
  EXPECT_THAT(sentence, HasSubstr("process " + std::to_string(other.pid())));
}

TEST_F(RegistryTest, ADeadOwnerIsReplacedAndLeavesNothingBehind) {
  SharedWords words;
  std::uintmax_t after_first = 0;
  for (std::uint64_t cycle = 1; cycle <= 20; ++cycle) {
    ChildProcess crashing([&] {
      const auto wire = open_wire(config_in(directory_), gid(1));
      static_cast<void>(wire->allocate(100'000));
      static_cast<void>(wire->path_to(gid(1), gid(1)));
      words[0] = cycle;
      ::pause();
      return 0;
    });
    ASSERT_TRUE(eventually([&] { return words[0] == cycle; }));
    crashing.kill();
    if (cycle == 1) after_first = bytes_used();
    ASSERT_EQ(bytes_used(), after_first) << "in cycle " << cycle;
  }
  const auto wire = open_wire(config_in(directory_), gid(1));
  EXPECT_LT(bytes_used(), after_first) << "segments and rings of the dead are still there";
}

// A zombie has its pid and start time still, and will never answer.
TEST_F(RegistryTest, AZombieIsDead) {
  SharedWords words;
  ChildProcess zombie([&] {
    const auto wire = open_wire(config_in(directory_), gid(1));
    words[0] = 1;
    ::pause();
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return words[0] == 1; }));
  ::kill(zombie.pid(), SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(zombie.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_NO_THROW(open_wire(config_in(directory_), gid(1)));
}

TEST_F(RegistryTest, APidThatSomebodyElseHasNowIsDead) {
  const Registry registry(directory_.path());
  const Mapping mapping = registry.enter(InstanceId{5}, std::vector{gid(1)});
  auto* instance = reinterpret_cast<Instance*>(mapping.data());
  instance->owner_start_time += 1;
  EXPECT_NO_THROW(open_wire(config_in(directory_), gid(1)));
}

TEST_F(RegistryTest, GarbageAndTruncatedFilesAreReplaced) {
  for (const std::string& content : {std::string(), std::string("x"), std::string(sizeof(Instance), 'x')}) {
    std::ofstream(gid_file()) << content;
    std::ofstream(directory_.path() + "/" + instance_name(InstanceId{7})) << content;
    std::ofstream(directory_.path() + "/" + segment_name(InstanceId{7}, 1)) << content;
    std::ofstream(directory_.path() + "/ring-nonsense") << content;
    const auto wire = open_wire(config_in(directory_), gid(1));
    EXPECT_EQ(directory_.names().size(), 3u) << "lock, instance and GID";
  }
}

TEST_F(RegistryTest, ALinkToSomewhereElseIsNotFollowed) {
  const std::string victim = directory_.path() + "-victim";
  std::ofstream(victim) << "precious";
  std::filesystem::create_symlink(victim, gid_file());
  const auto wire = open_wire(config_in(directory_), gid(1));
  std::string content;
  std::ifstream(victim) >> content;
  EXPECT_EQ(content, "precious");
  std::filesystem::remove(victim);
}

TEST_F(RegistryTest, FilesOfAnotherUserAreNamedAndLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  std::ofstream(gid_file()) << "theirs";
  ASSERT_EQ(::chown(gid_file().c_str(), 12345, 12345), 0);
  std::string sentence;
  EXPECT_EQ(code_of([&] { open_wire(config_in(directory_), gid(1)); }, &sentence), ErrorCode::permission);
  EXPECT_THAT(sentence, HasSubstr(gid_file()));
  EXPECT_THAT(sentence, HasSubstr("another user"));
  EXPECT_TRUE(std::filesystem::exists(gid_file()));
  EXPECT_EQ(directory_.names().size(), 2u) << "the refused device left something behind";
}

TEST_F(RegistryTest, ADirectoryThatIsNotPrivateIsRefused) {
  ::chmod(directory_.path().c_str(), 0755);
  EXPECT_EQ(code_of([&] { Registry{directory_.path()}; }), ErrorCode::permission);
  ::chmod(directory_.path().c_str(), 0700);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(directory_.path().c_str(), 12345, 12345), 0);
    EXPECT_EQ(code_of([&] { Registry{directory_.path()}; }), ErrorCode::permission);
    ASSERT_EQ(::chown(directory_.path().c_str(), 0, 0), 0);
  }
  const std::string link = directory_.path() + "/link";
  std::filesystem::create_directory_symlink(directory_.path(), link);
  EXPECT_EQ(code_of([&] { Registry{link}; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { Registry{directory_.path() + "/no/such"}; }), ErrorCode::not_found);
}

TEST_F(RegistryTest, GidsCanChangeWhileTheDeviceIsOpen) {
  const Registry registry(directory_.path());
  const auto wire = open_wire(config_in(directory_), gid(1));
  const auto other = open_wire(config_in(directory_), gid(3));
  const std::vector wanted{gid(2), gid(2)};
  wire->gids_changed(wanted);
  EXPECT_FALSE(registry.find(gid(1)));
  EXPECT_TRUE(registry.find(gid(2)));
  const std::vector taken{gid(4), gid(3)};
  EXPECT_EQ(code_of([&] { wire->gids_changed(taken); }), ErrorCode::busy);
  EXPECT_TRUE(registry.find(gid(2))) << "a refused change must change nothing";
  EXPECT_FALSE(registry.find(gid(4)));
}

TEST_F(RegistryTest, TwoWhoWantTheSameGidAtOnceDoNotBothGetIt) {
  SharedWords words;
  for (int round = 0; round < 20; ++round) {
    words[0] = 0;
    words[1] = 0;
    const auto body = [&] {
      while (words[0] == 0) ::sched_yield();
      try {
        const auto wire = open_wire(config_in(directory_), gid(1));
        ++words[1];
        while (words[0] != 2) ::sched_yield();
        return 1;
      } catch (const Error& error) {
        ++words[1];
        return error.code() == ErrorCode::busy ? 2 : 3;
      }
    };
    ChildProcess first(body);
    ChildProcess second(body);
    words[0] = 1;
    ASSERT_TRUE(eventually([&] { return words[1] == 2; }));
    words[0] = 2;
    ASSERT_EQ(first.wait() + second.wait(), 3) << "one opens it, the other is told that it is busy";
  }
}

TEST_F(RegistryTest, AForkedChildLeavesTheParentsDeviceAlone) {
  auto wire = open_wire(config_in(directory_), gid(1));
  static_cast<void>(wire->path_to(gid(1), gid(1)));
  const device::Memory memory = wire->allocate(1);
  const auto names = directory_.names();
  ChildProcess child([&] {
    wire->forked();
    wire.reset();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(directory_.names(), names);
  EXPECT_TRUE(Registry(directory_.path()).find(gid(1)));
  wire->deallocate(memory);
}

TEST_F(RegistryTest, ARingSizeThatCannotBeIsRefused) {
  for (const std::uint32_t bytes : {0U, 8192U, 65537U}) {
    std::string sentence;
    EXPECT_EQ(code_of([&] { open_wire(config_in(directory_, bytes), gid(1)); }, &sentence),
              ErrorCode::invalid_argument);
    EXPECT_THAT(sentence, HasSubstr("ring_bytes"));
  }
}

}  // namespace
}  // namespace verbatim::soft::shm
