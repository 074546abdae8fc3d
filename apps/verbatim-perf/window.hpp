// Requests under way, at most a window of them, which end in the order they began.
#pragma once

#include <cstdint>
#include <vector>

#include "exchange.hpp"

namespace verbatim::perf {

class Window {
 public:
  Window(Exchange& exchange, const char* what) : exchange_(exchange), what_(what), requests_(exchange.point().window) {}

  [[nodiscard]] bool full() const { return begun_ - ended_ == requests_.size(); }
  [[nodiscard]] bool empty() const { return begun_ == ended_; }
  // Not if full.
  void add(Request request) { requests_[begun_++ % requests_.size()] = std::move(request); }
  // The oldest has ended well; how many had before. Throws Error as Peer::await() does. Not if empty.
  std::uint64_t await_oldest() {
    exchange_.await(requests_[ended_ % requests_.size()], what_);
    return ended_++;
  }
  void await_all() {
    while (!empty()) await_oldest();
  }

 private:
  Exchange& exchange_;
  const char* what_;
  std::vector<Request> requests_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
};

}  // namespace verbatim::perf
