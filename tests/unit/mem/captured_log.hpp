// What the library logs while this lives, whatever the level that the environment asks for.
#pragma once

#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/log.hpp"

namespace verbatim::mem {

class CapturedLog {
 public:
  CapturedLog() : before_(log().sinks()), level_(log().level()) {
    log().sinks() = {std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)};
    log().set_level(spdlog::level::info);
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog() {
    log().sinks() = before_;
    log().set_level(level_);
  }
  [[nodiscard]] std::string text() const {
    log().flush();
    return text_.str();
  }
  [[nodiscard]] std::size_t lines() const {
    const std::string all = text();
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n'));
  }

 private:
  std::ostringstream text_;
  std::vector<spdlog::sink_ptr> before_;
  spdlog::level::level_enum level_;
};

}  // namespace verbatim::mem
