// The kernel's software RDMA device of the virtual machine.
#pragma once

#include <memory>

#include "device/ibverbs/provider.hpp"
#include "unit/mem/rig.hpp"

namespace verbatim::mem {

inline std::unique_ptr<device::Context> open_rxe() {
  return device::make_ibverbs_provider()->open("rxe0");
}

}  // namespace verbatim::mem
