#include "device/system.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "device/ibverbs/provider.hpp"
#include "device/soft/provider.hpp"
#include "device/soft/settings.hpp"

namespace verbatim::device {
namespace {

DeviceDescription describe_if_usable(Context& context, ProviderKind kind, const std::filesystem::path& sysfs) {
  // iWARP connects through a connection manager, and others have no RC queue pairs.
  if (context.handle()->device->transport_type != IBV_TRANSPORT_IB) {
    throw Error(ErrorCode::unsupported, "it is neither InfiniBand nor RoCE");
  }
  return describe(context, kind, sysfs);
}

}  // namespace

System::System(std::unique_ptr<Provider> ibverbs, std::unique_ptr<Provider> soft, std::filesystem::path sysfs)
    : ibverbs_(std::move(ibverbs)), soft_(std::move(soft)), sysfs_(std::move(sysfs)) {}

System System::of_this_host() {
  return System(make_ibverbs_provider(), soft::make_provider(soft::read_settings()));
}

Inventory System::list() {
  Inventory inventory;
  add(ProviderKind::ibverbs, ibverbs_.get(), inventory);
  add(ProviderKind::soft, soft_.get(), inventory);
  return inventory;
}

std::unique_ptr<Context> System::open(const Selection& selection) {
  auto* provider = selection.provider == ProviderKind::ibverbs ? ibverbs_.get() : soft_.get();
  if (provider == nullptr) {
    throw Error(ErrorCode::not_found, fmt::format("device '{}': there is no {} provider here", selection.device,
                                                  to_string(selection.provider)));
  }
  return provider->open(selection.device);
}

void System::add(ProviderKind kind, Provider* provider, Inventory& inventory) {
  if (provider == nullptr) return;
  std::vector<std::string> names;
  try {
    names = provider->list();
  } catch (const Error& error) {
    inventory.skipped.push_back({fmt::format("all devices of {}", to_string(kind)), error.what()});
  }
  for (const auto& name : names) {
    try {
      inventory.devices.push_back(describe_if_usable(*provider->open(name), kind, sysfs_));
    } catch (const Error& error) {
      inventory.skipped.push_back({name, error.what()});
    }
  }
}

}  // namespace verbatim::device
