// The other side of --local: a process of its own, forked before either opens a device.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>

#include "common/handover.hpp"

namespace verbatim::perf {

// What both processes see.
struct SharedPage {
  apps::HandoverLines lines;
  std::atomic<bool> listens;
  char address[256];  // where, once it does
};

class Partner {
 public:
  // Runs `side` in a child process, whose exit status it returns; it is killed if this process dies.
  explicit Partner(const std::function<int(SharedPage&)>& side);
  // Ends it if it still runs.
  ~Partner();
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  [[nodiscard]] SharedPage& page() { return *page_; }
  // Throws Error if it has ended.
  void look_after() const;
  // Where it listens. Throws Error if it ends, or does not listen in time.
  [[nodiscard]] std::string await_address() const;
  // Its exit status. Throws Error if it was killed by a signal, or does not end in time.
  int await_end();

 private:
  SharedPage* page_;
  pid_t process_ = -1;
};

}  // namespace verbatim::perf
