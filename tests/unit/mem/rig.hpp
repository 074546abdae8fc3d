// A soft device to register memory with, in a directory of its own or on the simulated network.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "device/soft/provider.hpp"
#include "device/soft/sim/network.hpp"
#include "mem/registrar.hpp"

namespace verbatim::mem {

// Every device of a test program lives here, those of its children too; gone at its end.
class DeviceDirectory {
 public:
  DeviceDirectory() {
    char name[] = "/dev/shm/verbatim-mem-XXXXXX";
    if (::mkdtemp(name) == nullptr) std::abort();
    path_ = name;
  }
  DeviceDirectory(const DeviceDirectory&) = delete;
  DeviceDirectory& operator=(const DeviceDirectory&) = delete;
  ~DeviceDirectory() {
    if (::getpid() == owner_) std::filesystem::remove_all(path_);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  pid_t owner_ = ::getpid();
};
inline const DeviceDirectory device_directory;

inline soft::DeviceConfig shm_config() {
  soft::DeviceConfig config;
  config.directory = device_directory.path();
  return config;
}

class Rig {
 public:
  explicit Rig(std::unique_ptr<device::Context> opened) : context(std::move(opened)), pd(context->alloc_pd()) {}
  explicit Rig(const soft::DeviceConfig& config) : Rig(soft::make_provider(config)->open(config.name)) {}
  Rig() : Rig(shm_config()) {}
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  ~Rig() { context->dealloc_pd(pd); }

  std::unique_ptr<device::Context> context;
  ibv_pd* pd;
  PinnedBytes pinned;
  Registrar registrar{*context, pd, pinned};
};

}  // namespace verbatim::mem
