// Which of the processes that a device has to do with are gone. The helper asks the kernel, so that the thread that
// polls need not.
//
// The roll belongs to one of the two at a time: whoever has it hands it over when done (errand::keep_house).
#pragma once

#include <vector>

#include "device/soft/shm/layout.hpp"
#include "device/soft/shm/process_identity.hpp"

namespace verbatim::soft::shm {

class ProcessRoll {
 public:
  ProcessRoll() { entries_.reserve(most); }

  // Asks the kernel for every process that is on the roll.
  void look();

  // As look() found it. One that is not on the roll is put there, and lives until the next look.
  [[nodiscard]] bool alive(const ProcessIdentity& process);
  // Strikes off those that alive() was not asked for since the last call.
  void forget_others();

 private:
  // As many may send to the device, and it to others: beyond that the roll allocates.
  static constexpr std::size_t most = std::size_t{2} * max_peers;

  struct Entry {
    ProcessIdentity process;
    bool alive = true;
    bool asked_for = true;
  };
  std::vector<Entry> entries_;  // in the order of pid and start time
};

}  // namespace verbatim::soft::shm
