#include "device/preload/soft_devices.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <utility>

#include "base/error.hpp"
#include "device/provider.hpp"
#include "device/soft/provider.hpp"
#include "device/soft/settings.hpp"

namespace verbatim::preload {
namespace {

// Readers of libibverbs' private verbs_device look behind the ibv_device: they find zeroes.
struct ListedDevice {
  ibv_device device{};
  std::byte behind[512]{};
};

struct Soft {
  std::unique_ptr<device::Provider> provider;
  ListedDevice listed;
  std::shared_mutex mutex;
  struct Opened {
    std::unique_ptr<device::Context> context;
    pid_t by = 0;
    std::uint32_t times = 0;
  };
  std::map<const ibv_context*, Opened> contexts;
};

int errno_of(const Error& error) noexcept {
  switch (error.code()) {
    case ErrorCode::permission:
      return EACCES;
    case ErrorCode::no_space:
      return ENOSPC;
    case ErrorCode::busy:
      return EBUSY;
    case ErrorCode::invalid_argument:
      return EINVAL;
    default:
      return ENODEV;
  }
}

Soft& soft() noexcept;

void complain(const char* what) noexcept {
  std::fprintf(stderr, "libverbatim-verbs: %s\n", what);
}

// Never destroyed: programs use devices in their own destructors too.
Soft& soft() noexcept {
  static Soft* const instance = [] {
    alignas(Soft) static std::byte room[sizeof(Soft)];
    auto* const made = new (room) Soft;
    try {
      const soft::DeviceConfig config = soft::read_settings();
      ibv_device& device = made->listed.device;
      device.node_type = IBV_NODE_CA;
      device.transport_type = IBV_TRANSPORT_IB;
      std::snprintf(device.name, sizeof(device.name), "%s", config.name.c_str());
      std::snprintf(device.dev_name, sizeof(device.dev_name), "%s", config.name.c_str());
      made->provider = soft::make_provider(config);
    } catch (const std::exception& error) {
      complain(error.what());
    }
    // Whole in a child too, whatever other threads were opening.
    ::pthread_atfork([] { soft().mutex.lock(); }, [] { soft().mutex.unlock(); }, [] { soft().mutex.unlock(); });
    return made;
  }();
  return *instance;
}

}  // namespace

ibv_device* soft_device() noexcept {
  return soft().provider != nullptr ? &soft().listed.device : nullptr;
}

bool is_soft(const ibv_device* device) noexcept {
  return device != nullptr && device == &soft().listed.device;
}

ibv_context* open_soft() noexcept {
  Soft& all = soft();
  const std::unique_lock lock(all.mutex);
  for (auto& [handle, opened] : all.contexts) {
    if (opened.by != ::getpid()) continue;
    ++opened.times;
    return opened.context->handle();
  }
  try {
    std::unique_ptr<device::Context> context = all.provider->open(all.listed.device.name);
    ibv_context* const handle = context->handle();
    handle->device = &all.listed.device;
    // What a program may hand to another for ibv_import_device(3): a descriptor that can be told from all others.
    handle->cmd_fd = ::memfd_create("verbatim device", MFD_CLOEXEC);
    all.contexts.emplace(handle, Soft::Opened{std::move(context), ::getpid(), 1});
    return handle;
  } catch (const Error& error) {
    complain(error.what());
    errno = errno_of(error);
  } catch (const std::exception& error) {
    complain(error.what());
    errno = ENOMEM;
  }
  return nullptr;
}

bool is_of_soft(int command_descriptor) noexcept {
  struct stat asked {};
  if (::fstat(command_descriptor, &asked) != 0) return false;
  Soft& all = soft();
  const std::shared_lock lock(all.mutex);
  return std::ranges::any_of(all.contexts, [&](const auto& entry) {
    struct stat own {};
    return ::fstat(entry.first->cmd_fd, &own) == 0 && own.st_ino == asked.st_ino && own.st_dev == asked.st_dev;
  });
}

device::Context* soft_of(const ibv_context* context) noexcept {
  Soft& all = soft();
  const std::shared_lock lock(all.mutex);
  const auto found = all.contexts.find(context);
  return found == all.contexts.end() ? nullptr : found->second.context.get();
}

void close_soft(const ibv_context* context) noexcept {
  Soft& all = soft();
  std::unique_ptr<device::Context> closed;
  const std::unique_lock lock(all.mutex);
  const auto found = all.contexts.find(context);
  if (found == all.contexts.end() || --found->second.times != 0) return;
  closed = std::move(found->second.context);
  if (context->cmd_fd >= 0) ::close(context->cmd_fd);
  all.contexts.erase(found);
}

}  // namespace verbatim::preload
