// The device under test: that of VERBATIM_TEST_DEVICE, or else the first there is.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "device/context.hpp"
#include "qp/connection.hpp"

namespace verbatim::qp::test {

// Opened once per test program, with what queue pairs need. Never closed: tests use it to the end.
struct Device {
  std::unique_ptr<device::Context> context;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  // Of port 1: the path to the port itself, by its last GID, which is one that a route leads to.
  Path path;
  PathMtu path_mtu;

  // How every queue pair of these tests is made.
  [[nodiscard]] ibv_qp_init_attr queue_pair(ibv_qp_type type) const;
};

// Throws if there is no device.
[[nodiscard]] Device& device_under_test();

}  // namespace verbatim::qp::test
