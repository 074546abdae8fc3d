#include "device/system.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "unit/device/fake_context.hpp"
#include "unit/device/fake_sysfs.hpp"

namespace verbatim::device {
namespace {

using Opener = std::function<std::unique_ptr<Context>()>;

class FakeProvider final : public Provider {
 public:
  explicit FakeProvider(std::vector<std::pair<std::string, Opener>> devices) : devices_(std::move(devices)) {}
  [[nodiscard]] std::vector<std::string> list() override {
    std::vector<std::string> names;
    for (const auto& [name, open] : devices_) names.push_back(name);
    return names;
  }
  [[nodiscard]] std::unique_ptr<Context> open(std::string_view wanted) override {
    for (const auto& [name, open] : devices_) {
      if (name == wanted) return open();
    }
    throw Error(ErrorCode::not_found, "no such device");
  }

 private:
  std::vector<std::pair<std::string, Opener>> devices_;
};

class BrokenProvider final : public Provider {
 public:
  [[nodiscard]] std::vector<std::string> list() override { throw Error(ErrorCode::device_failure, "out of order"); }
  [[nodiscard]] std::unique_ptr<Context> open(std::string_view) override {
    throw Error(ErrorCode::device_failure, "out of order");
  }
};

std::pair<std::string, Opener> good(const std::string& name) {
  return {name, [name] { return std::make_unique<FakeContext>(name); }};
}

std::pair<std::string, Opener> unopenable(const std::string& name) {
  return {name, []() -> std::unique_ptr<Context> { throw Error(ErrorCode::permission, "Permission denied"); }};
}

// describe() asks a device of libibverbs for more than a fake one has, so the fake ones are all soft.
System system_of(std::vector<std::pair<std::string, Opener>> devices) {
  return System(nullptr, std::make_unique<FakeProvider>(std::move(devices)), "/nonexistent");
}

TEST(System, SkipsADeviceThatCannotBeOpenedAndListsTheOthers) {
  auto system = system_of({unopenable("a"), good("b"), unopenable("c"), good("d")});
  const auto inventory = system.list();
  ASSERT_EQ(inventory.devices.size(), 2u);
  EXPECT_EQ(inventory.devices[0].name, "b");
  EXPECT_EQ(inventory.devices[1].name, "d");
  ASSERT_EQ(inventory.skipped.size(), 2u);
  EXPECT_EQ(inventory.skipped[0].name, "a");
  EXPECT_EQ(inventory.skipped[0].reason, "Permission denied");
}

TEST(System, SkipsADeviceThatIsNotOfInfiniBandVerbs) {
  auto system = system_of({{"siw0", [] {
                              auto context = std::make_unique<FakeContext>("siw0");
                              context->device().transport_type = IBV_TRANSPORT_IWARP;
                              return context;
                            }}});
  const auto inventory = system.list();
  EXPECT_TRUE(inventory.devices.empty());
  ASSERT_EQ(inventory.skipped.size(), 1u);
  EXPECT_EQ(inventory.skipped[0].reason, "it is neither InfiniBand nor RoCE");
}

TEST(System, ListsTheSoftDeviceWhenLibibverbsFails) {
  System system(std::make_unique<BrokenProvider>(),
                std::make_unique<FakeProvider>(std::vector<std::pair<std::string, Opener>>{good("soft0")}));
  const auto inventory = system.list();
  ASSERT_EQ(inventory.devices.size(), 1u);
  EXPECT_EQ(inventory.devices[0].provider, ProviderKind::soft);
  ASSERT_EQ(inventory.skipped.size(), 1u);
  EXPECT_EQ(inventory.skipped[0].name, "all devices of ibverbs");
  EXPECT_EQ(inventory.skipped[0].reason, "out of order");
}

TEST(System, OpensWhatWasSelected) {
  auto system = system_of({good("a"), good("b")});
  Selection selection;
  selection.device = "b";
  selection.provider = ProviderKind::soft;
  EXPECT_EQ(system.open(selection)->name(), "b");
  selection.provider = ProviderKind::ibverbs;
  EXPECT_THROW((void)system.open(selection), Error);
}

}  // namespace
}  // namespace verbatim::device
