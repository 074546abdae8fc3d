#include "transport/control/identity.hpp"

#include <fmt/format.h>

namespace verbatim::transport::control {

std::uint64_t fingerprint(const SharedSettings& settings) noexcept {
  // FNV-1a over the members in order: both ends run the same code, so any hash does that changes with each bit.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::uint32_t value : {settings.message_format, settings.message_header_bytes, settings.ring_alignment_bytes}) {
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ ((value >> shift) & 0xff)) * 0x100000001b3;
  }
  return hash;
}

std::string describe(const SharedSettings& settings) {
  return fmt::format("message format {}, headers of {} bytes, ring entries aligned to {} bytes",
                     settings.message_format, settings.message_header_bytes, settings.ring_alignment_bytes);
}

}  // namespace verbatim::transport::control
