// The soft device in two processes of this host, over shared memory.
#include "conformance/two_process_fabric.hpp"
#include "device/soft/provider.hpp"

namespace verbatim::conformance {

std::unique_ptr<Fabric> make_fabric() {
  return std::make_unique<TwoProcessFabric>([] {
    const auto provider = soft::make_provider();
    return provider->open(provider->list().front());
  });
}

std::optional<std::string> why_no_fabric() {
  return std::nullopt;
}

}  // namespace verbatim::conformance
