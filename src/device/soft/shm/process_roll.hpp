// Which of the processes that a device has to do with are gone. The helper asks the kernel, so that the thread that
// polls need not.
//
// The roll belongs to one of the two at a time: whoever has it hands it over when done (errand::keep_house).
#pragma once

#include <map>
#include <utility>

#include "device/soft/shm/process_identity.hpp"

namespace verbatim::soft::shm {

class ProcessRoll {
 public:
  // Asks the kernel for every process that is on the roll.
  void look();

  // As look() found it. One that is not on the roll is put there, and the kernel is asked at once: only new peers cost
  // system calls.
  [[nodiscard]] bool alive(const ProcessIdentity& process);
  // Strikes off those that alive() was not asked for since the last call.
  void forget_others();

 private:
  struct Entry {
    bool alive = true;
    bool asked_for = true;
  };
  using Key = std::pair<pid_t, std::uint64_t>;
  std::map<Key, Entry> entries_;
};

}  // namespace verbatim::soft::shm
