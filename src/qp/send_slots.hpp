// Who may post how much to a send queue. A slot comes back when a signalled completion at or behind it is polled, so
// completions must be asked for often enough; here is decided when.
//
// Posts are counted by ordinals, modulo 2^28. A send queue completes in order, errors included, so the completion of
// one ordinal speaks for all before it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qp/work_id.hpp"

namespace verbatim::qp {

class SendSlots {
 public:
  // `data` slots for anything, `control` more for control messages alone. Every `signal_interval`-th post asks for a
  // completion, at the least four in a round of the data slots, and so does each post that takes or follows the last of
  // them. Ordinals start at `first`.
  constexpr SendSlots(std::uint32_t data, std::uint32_t control, std::uint32_t signal_interval, std::uint32_t first = 0)
      : data_(data),
        control_(control),
        interval_(std::min(signal_interval, std::max(1U, data / 4))),
        next_(first & WorkId::slot_mask) {}

  [[nodiscard]] constexpr std::uint32_t control_free() const { return data_ + control_ - outstanding_; }
  [[nodiscard]] constexpr std::uint32_t data_free() const { return outstanding_ < data_ ? data_ - outstanding_ : 0; }
  [[nodiscard]] constexpr std::uint32_t outstanding() const { return outstanding_; }
  [[nodiscard]] constexpr std::uint32_t next_ordinal() const { return next_; }

  // Whether the next post must ask for a completion, whatever its caller wants.
  [[nodiscard]] constexpr bool must_signal() const { return unsignalled_ + 1 >= interval_ || data_free() <= 1; }
  constexpr void posted(bool signalled) {
    next_ = (next_ + 1) & WorkId::slot_mask;
    ++outstanding_;
    unsignalled_ = signalled ? 0 : unsignalled_ + 1;
  }
  // How many slots the completion of that ordinal gives back; 0 for one that is not outstanding.
  constexpr std::uint32_t completed(std::uint32_t ordinal) {
    const std::uint32_t oldest = next_ - outstanding_;
    const std::uint32_t back = ((ordinal - oldest) & WorkId::slot_mask) + 1;
    if (back > outstanding_) return 0;
    outstanding_ -= back;
    return back;
  }
  // The queue pair was reset: nothing is outstanding. Ordinals go on, so an older completion is still known as one.
  constexpr void forget() { outstanding_ = unsignalled_ = 0; }

 private:
  std::uint32_t data_;
  std::uint32_t control_;
  std::uint32_t interval_;
  std::uint32_t next_;
  std::uint32_t outstanding_ = 0;
  std::uint32_t unsignalled_ = 0;  // posts since the last that asked for a completion
};

}  // namespace verbatim::qp
