#include "device/soft/shm/process_roll.hpp"

#include <algorithm>
#include <tuple>

namespace verbatim::soft::shm {
namespace {

[[nodiscard]] auto key_of(const ProcessIdentity& process) {
  return std::tuple(process.pid, process.start_time);
}

}  // namespace

void ProcessRoll::look() {
  for (Entry& entry : entries_) {
    if (entry.alive) entry.alive = entry.process.alive();
  }
}

bool ProcessRoll::alive(const ProcessIdentity& process) {
  auto place = std::lower_bound(entries_.begin(), entries_.end(), process, [](const Entry& entry, const auto& sought) {
    return key_of(entry.process) < key_of(sought);
  });
  if (place == entries_.end() || key_of(place->process) != key_of(process)) {
    place = entries_.insert(place, Entry{.process = process});
  }
  place->asked_for = true;
  return place->alive;
}

void ProcessRoll::forget_others() {
  std::erase_if(entries_, [](const Entry& entry) { return !entry.asked_for; });
  for (Entry& entry : entries_) entry.asked_for = false;
}

}  // namespace verbatim::soft::shm
