// Requests under way, at most a window of them, which end in the order they began.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "exchange.hpp"

namespace verbatim::perf {

class Window {
 public:
  Window(Exchange& exchange, const char* what) : exchange_(exchange), what_(what), requests_(exchange.point().window) {}

  [[nodiscard]] bool full() const { return begun_ - ended_ == requests_.size(); }
  [[nodiscard]] bool empty() const { return begun_ == ended_; }
  // Not if full.
  void add(Request request) {
    requests_[next(newest_)] = std::move(request);
    ++begun_;
  }
  // The oldest has ended well; how many had before. Throws Error as Peer::await() does. Not if empty.
  std::uint64_t await_oldest() {
    exchange_.await(requests_[next(oldest_)], what_);
    return ended_++;
  }
  void await_all() {
    while (!empty()) await_oldest();
  }

 private:
  // A division would cost as much as some operations do.
  std::size_t next(std::size_t& place) const {
    return std::exchange(place, place + 1 == requests_.size() ? 0 : place + 1);
  }

  Exchange& exchange_;
  const char* what_;
  std::vector<Request> requests_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  std::size_t newest_ = 0;  // places of the next to begin and the next to end
  std::size_t oldest_ = 0;
};

}  // namespace verbatim::perf
