// The machine's own clock. Edge only: protocol code takes a Time or a Clock (tests/architecture holds it to that).
#pragma once

#include "base/clock.hpp"

namespace verbatim {

class MonotonicClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override;
};

}  // namespace verbatim
