// The lock around one device's engine.
//
// Shared mode: a spin lock that everybody takes. Biased mode, when all that the device holds was made in one thread
// domain (ibv_alloc_td(3): its objects are used by one thread at a time): the domain's thread takes nothing. It says
// that it is inside with a plain store; whoever else comes (the helper thread, control calls) announces itself, makes
// that store visible with a barrier that only the visitor pays for (membarrier(2)), and waits for the owner to be
// outside.
#pragma once

#include <atomic>
#include <mutex>

namespace verbatim::soft {

class SpinLock {
 public:
  void lock() {
    for (int tries = 0; held_.exchange(true, std::memory_order_acquire); ++tries) wait(tries);
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  static void wait(int tries);
  std::atomic<bool> held_{false};
};

class EngineLock {
 public:
  // The data path of the owner of the bias, or of anybody in shared mode. True: the lock itself was taken.
  [[nodiscard]] bool enter() {
    if (biased_.load(std::memory_order_acquire)) {
      owner_inside_.store(true, owner_order);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      // A visit that ended since the first look may have taken the bias away.
      if (!visited_.load(visited_order) && biased_.load(std::memory_order_relaxed)) return false;
      owner_inside_.store(false, std::memory_order_release);
    }
    lock_.lock();
    return true;
  }
  void leave(bool took_lock) {
    if (took_lock) {
      lock_.unlock();
    } else {
      owner_inside_.store(false, std::memory_order_release);
    }
  }

  // Everybody else: helper thread and control path.
  void visit();
  void end_visit();

  // Only during a visit. Where the system has no membarrier the lock stays shared.
  void set_biased(bool biased);
  [[nodiscard]] bool biased() const { return biased_.load(std::memory_order_relaxed); }

 private:
#ifdef __SANITIZE_THREAD__
  // ThreadSanitizer does not know membarrier: there the owner pays for the order itself.
  static constexpr auto owner_order = std::memory_order_seq_cst;
  static constexpr auto visited_order = std::memory_order_seq_cst;
#else
  static constexpr auto owner_order = std::memory_order_relaxed;
  static constexpr auto visited_order = std::memory_order_acquire;
#endif

  SpinLock lock_;
  std::atomic<bool> biased_{false};
  std::atomic<bool> visited_{false};
  alignas(64) std::atomic<bool> owner_inside_{false};
};

// Data path.
class EngineEntry {
 public:
  explicit EngineEntry(EngineLock& lock) : lock_(lock), took_lock_(lock.enter()) {}
  ~EngineEntry() { lock_.leave(took_lock_); }
  EngineEntry(const EngineEntry&) = delete;
  EngineEntry& operator=(const EngineEntry&) = delete;

 private:
  EngineLock& lock_;
  const bool took_lock_;
};

// Control path and helper.
class EngineVisit {
 public:
  explicit EngineVisit(EngineLock& lock) : lock_(lock) { lock_.visit(); }
  ~EngineVisit() { lock_.end_visit(); }
  EngineVisit(const EngineVisit&) = delete;
  EngineVisit& operator=(const EngineVisit&) = delete;

 private:
  EngineLock& lock_;
};

}  // namespace verbatim::soft
