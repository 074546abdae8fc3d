#include "vm/qp_states/device.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/ibverbs/provider.hpp"

namespace verbatim::qp::test {
namespace {

constexpr PortNumber port{1};

std::unique_ptr<device::Context> open() {
  const auto provider = device::make_ibverbs_provider();
  if (const char* name = std::getenv("VERBATIM_TEST_DEVICE")) return provider->open(name);
  const auto names = provider->list();
  if (names.empty()) throw std::runtime_error("no RDMA device here");
  return provider->open(names.front());
}

Path path_to_itself(device::Context& context) {
  std::vector<ibv_gid_entry> gids;
  if (context.query_gid_table(gids) != 0 || gids.empty()) throw std::runtime_error("the device has no GID");
  const auto& own = gids.back();
  return {.port = port,
          .route = Route{.destination = own.gid, .source_gid_index = static_cast<std::uint8_t>(own.gid_index)}};
}

PathMtu active_mtu(device::Context& context) {
  ibv_port_attr attributes{};
  if (context.query_port(port.value, attributes) != 0) throw std::runtime_error("the device has no port 1");
  return PathMtu::from_code(attributes.active_mtu);
}

Device open_device() {
  auto context = open();
  auto path = path_to_itself(*context);
  auto path_mtu = active_mtu(*context);
  auto* pd = context->alloc_pd();
  auto* cq = context->create_cq(64, nullptr, nullptr, 0);
  if (pd == nullptr || cq == nullptr) throw std::runtime_error("no PD or CQ on " + context->name());
  return {std::move(context), pd, cq, path, path_mtu};
}

}  // namespace

ibv_qp_init_attr Device::queue_pair(ibv_qp_type type) const {
  ibv_qp_init_attr attributes{};
  attributes.qp_type = type;
  attributes.send_cq = cq;
  attributes.recv_cq = cq;
  attributes.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  return attributes;
}

Device& device_under_test() {
  static Device device = open_device();
  return device;
}

}  // namespace verbatim::qp::test
