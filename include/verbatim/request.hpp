// One operation under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "verbatim/types.hpp"

namespace verbatim {

// How an operation ended. Of a receive also what came.
struct Completion {
  Outcome outcome = Outcome::pending;
  Status status = Status::ok;
  ChannelId source;         // of a receive: through which channel
  Tag tag;                  // of a receive: the sender's
  std::uint64_t bytes = 0;  // the message's length; of a truncated receive more than was written
};

namespace detail {
// Lives in its worker's pool. The worker and at most one Request know it; it goes back when both have let go. Or a
// constant, which any number of Requests know that ended as it says, at once.
struct RequestRecord {
  Completion completion;
  bool held = false;  // by a Request, which has to let go of it
};
void release(RequestRecord& record) noexcept;
}  // namespace detail

// A handle, for the thread of the worker that gave it. It ends exactly once: done() turns true and stays so. Letting
// go of it earlier is fine, and doesn't cancel anything: the operation goes on and the buffer stays the library's until
// it ends, which then only a flush tells.
//
// It is one pointer: a handle that is moved while the bytes of its message are still on their way out of this core must
// not read anything of several words that was just written, which would wait for them.
class Request {
 public:
  Request() = default;  // of nothing: done, Outcome::not_delivered, Status::invalid_argument
  explicit Request(detail::RequestRecord& record) : record_(&record) {}
  Request(Request&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      let_go();
      record_ = std::exchange(other.record_, nullptr);
    }
    return *this;
  }
  ~Request() { let_go(); }

  [[nodiscard]] bool done() const noexcept {
    if (record_ == nullptr) return true;
    return std::atomic_ref(record_->completion.outcome).load(std::memory_order_acquire) != Outcome::pending;
  }
  // To be looked at once done(). Valid as long as this Request is.
  [[nodiscard]] const Completion& completion() const noexcept {
    return record_ != nullptr ? record_->completion : of_nothing;
  }
  // Ended as it should: delivered, or of a short send accepted.
  [[nodiscard]] bool ok() const noexcept {
    if (!done()) return false;
    const Completion& how = completion();
    return how.status == Status::ok && (how.outcome == Outcome::delivered || how.outcome == Outcome::accepted);
  }

  // For the library: nullptr if it ended at once.
  [[nodiscard]] detail::RequestRecord* record() const noexcept {
    return record_ != nullptr && record_->held ? record_ : nullptr;
  }

 private:
  static constexpr Completion of_nothing{Outcome::not_delivered, Status::invalid_argument, {}, {}, 0};

  void let_go() noexcept {
    if (record_ != nullptr && record_->held) detail::release(*record_);
    record_ = nullptr;
  }

  detail::RequestRecord* record_ = nullptr;
};

}  // namespace verbatim
