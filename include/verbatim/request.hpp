// One operation under way.
#pragma once

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
// Lives in its worker's pool. The worker and at most one Request know it; it goes back when both have let go.
struct RequestRecord {
  Completion completion;
  bool held = false;  // by a Request
};
void release(RequestRecord& record) noexcept;
}  // namespace detail

// A handle, for the thread of the worker that gave it. It ends exactly once: done() turns true and stays so. Letting
// go of it earlier is fine, and doesn't cancel anything: the operation goes on and the buffer stays the library's until
// it ends, which then only a flush tells.
class Request {
 public:
  Request() = default;  // of nothing: done, Outcome::not_delivered, Status::invalid_argument
  explicit Request(detail::RequestRecord& record) : record_(&record) { record.held = true; }
  // Refused at once, or done at once; nothing is under way.
  explicit Request(const Completion& at_once) : at_once_(at_once) {}
  Request(Request&& other) noexcept : record_(std::exchange(other.record_, nullptr)), at_once_(other.at_once_) {}
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      let_go();
      record_ = std::exchange(other.record_, nullptr);
      at_once_ = other.at_once_;
    }
    return *this;
  }
  ~Request() { let_go(); }

  [[nodiscard]] bool done() const noexcept { return completion().outcome != Outcome::pending; }
  // Whole only once done().
  [[nodiscard]] const Completion& completion() const noexcept {
    return record_ != nullptr ? record_->completion : at_once_;
  }
  // Ended as it should: delivered, or of a short send accepted.
  [[nodiscard]] bool ok() const noexcept {
    const Completion& how = completion();
    return how.status == Status::ok && (how.outcome == Outcome::delivered || how.outcome == Outcome::accepted);
  }

  [[nodiscard]] detail::RequestRecord* record() const noexcept { return record_; }

 private:
  void let_go() noexcept {
    if (record_ != nullptr) detail::release(*std::exchange(record_, nullptr));
  }

  detail::RequestRecord* record_ = nullptr;
  Completion at_once_{Outcome::not_delivered, Status::invalid_argument, {}, {}, 0};
};

}  // namespace verbatim
