#include "device/soft/shm/process_roll.hpp"

namespace verbatim::soft::shm {

void ProcessRoll::look() {
  for (auto& [key, entry] : entries_) {
    if (entry.alive) entry.alive = ProcessIdentity{key.first, key.second}.alive();
  }
}

bool ProcessRoll::alive(const ProcessIdentity& process) {
  const auto [found, is_new] = entries_.try_emplace({process.pid, process.start_time});
  Entry& entry = found->second;
  entry.asked_for = true;
  if (is_new) entry.alive = process.alive();
  return entry.alive;
}

void ProcessRoll::forget_others() {
  std::erase_if(entries_, [](const auto& named) { return !named.second.asked_for; });
  for (auto& [key, entry] : entries_) entry.asked_for = false;
}

}  // namespace verbatim::soft::shm
