// What was counted, beside the limits that the library promises.
#pragma once

#include <string>
#include <vector>

#include "shared_page.hpp"
#include "system_calls.hpp"

namespace verbatim::data_path {

struct Report {
  std::string table;
  std::vector<std::string> broken;  // a sentence for each limit that was
};

[[nodiscard]] Report make_report(const SharedPage& page, SystemCallTracer& tracer);

}  // namespace verbatim::data_path
