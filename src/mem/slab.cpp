#include "mem/slab.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/error.hpp"

namespace verbatim::mem {
namespace {

std::size_t whole_lines(std::size_t slot_bytes, Slab::Index slots) {
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  if (slot_bytes == 0 || slots == 0 || slot_bytes > most / slots - Slab::line_bytes) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} slots of {} bytes make no slab; it needs one of each at least, and room in the address "
                            "space",
                            slots, slot_bytes));
  }
  return (slot_bytes + Slab::line_bytes - 1) / Slab::line_bytes * Slab::line_bytes;
}

}  // namespace

Slab::Slab(const Registrar& registrar, std::size_t slot_bytes, Index slots, Access access,
           const MemoryPlacement& placement)
    : slot_bytes_(whole_lines(slot_bytes, slots)),
      slots_(slots),
      region_(RegisteredRegion::allocate(registrar, slot_bytes_ * slots, access, placement)),
      free_(slots) {
  // The first slot on top.
  for (Index i = 0; i < slots; ++i) free_[i] = slots - 1 - i;
}

}  // namespace verbatim::mem
