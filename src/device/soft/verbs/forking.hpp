// fork(2), with devices open: whoever takes part is whole when the child's copy is made, and is told on which side it
// wakes up. A child made without fork's handlers (vfork, posix_spawn, clone) must not touch a device.
#pragma once

namespace verbatim::soft {

// Called in the thread that forks. Between before_fork() and its counterpart no other thread of the parent may change
// what the participant's destructor looks at.
class ForkParticipant {
 public:
  virtual void before_fork() = 0;
  virtual void after_fork_in_parent() = 0;
  virtual void after_fork_in_child() = 0;

 protected:
  ~ForkParticipant() = default;
};

// Takes part while it lives. Throws Error(no_space) if the C library can't remember fork handlers.
class ForkRegistration {
 public:
  explicit ForkRegistration(ForkParticipant& participant);
  ~ForkRegistration();
  ForkRegistration(const ForkRegistration&) = delete;
  ForkRegistration& operator=(const ForkRegistration&) = delete;

 private:
  ForkParticipant& participant_;
};

}  // namespace verbatim::soft
