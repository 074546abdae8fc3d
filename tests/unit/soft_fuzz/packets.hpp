// Packets made up for a queue pair: right in most fields, so that they get deep into the engine, and wrong in some.
#pragma once

#include "unit/soft_fuzz/inhabitants.hpp"

namespace verbatim::soft::fuzz {

[[nodiscard]] Packet make_packet(Random& random, Inhabitants& device);

}  // namespace verbatim::soft::fuzz
