#include "device/soft/verbs/forking.hpp"

#include <pthread.h>

#include <mutex>
#include <vector>

#include "base/error.hpp"

namespace verbatim::soft {
namespace {

struct Participants {
  std::mutex mutex;  // held across a fork: nobody comes or goes meanwhile
  std::vector<ForkParticipant*> all;
};

// Never destroyed: a process may fork while it ends.
Participants& participants() {
  static auto& made = *new Participants;
  return made;
}

void before_fork() {
  participants().mutex.lock();
  for (ForkParticipant* each : participants().all) each->before_fork();
}
void after_fork_in_parent() {
  for (ForkParticipant* each : participants().all) each->after_fork_in_parent();
  participants().mutex.unlock();
}
void after_fork_in_child() {
  for (ForkParticipant* each : participants().all) each->after_fork_in_child();
  participants().mutex.unlock();
}

}  // namespace

ForkRegistration::ForkRegistration(ForkParticipant& participant) : participant_(participant) {
  static const bool handled = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
  if (!handled) throw Error(ErrorCode::no_space, "soft device: no memory for the handlers of fork");
  const std::lock_guard lock(participants().mutex);
  participants().all.push_back(&participant_);
}

ForkRegistration::~ForkRegistration() {
  const std::lock_guard lock(participants().mutex);
  std::erase(participants().all, &participant_);
}

}  // namespace verbatim::soft
