// One line on standard error that says what is going on.
#pragma once

#include <cstddef>
#include <string>

#include "plan.hpp"

namespace verbatim::perf {

class ProgressLine {
 public:
  // Shows itself on a terminal, and elsewhere, line by line, if it is `wanted`.
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Point `number` of `points`, counted from 1, begins.
  void show(std::size_t number, std::size_t points, const Point& point);

 private:
  void clear();

  bool terminal_;
  bool wanted_;
};

}  // namespace verbatim::perf
