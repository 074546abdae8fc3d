// Devices of libibverbs: RDMA hardware, and the kernel's software devices (rxe, siw).
#pragma once

#include <memory>

#include "device/provider.hpp"

namespace verbatim::device {

[[nodiscard]] std::unique_ptr<Provider> make_ibverbs_provider();

}  // namespace verbatim::device
