// The system's own RDMA device, reached by itself: VERBATIM_TEST_DEVICE, or the first there is.
#include <cstdlib>
#include <string>

#include "conformance/two_process_fabric.hpp"
#include "device/ibverbs/provider.hpp"

namespace verbatim::conformance {

namespace {

std::string device_name(device::Provider& provider) {
  if (const char* wanted = std::getenv("VERBATIM_TEST_DEVICE")) return wanted;
  const std::vector<std::string> names = provider.list();
  return names.empty() ? "" : names.front();
}

}  // namespace

std::unique_ptr<Fabric> make_fabric() {
  return std::make_unique<TwoProcessFabric>([] {
    const auto provider = device::make_ibverbs_provider();
    return provider->open(device_name(*provider));
  });
}

std::optional<std::string> why_no_fabric() {
  const auto provider = device::make_ibverbs_provider();
  if (device_name(*provider).empty()) return "this system has no RDMA device";
  return std::nullopt;
}

}  // namespace verbatim::conformance
