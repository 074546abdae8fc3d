// Turns at something that usually one thread has for itself: a fair lock that costs a look at a flag while nobody
// shares.
//
// One of those who share may sleep between its turns (sleeper). What others do in a turn may be work for it, so whoever
// ends a Call wakes it.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace verbatim {

class Turns {
 public:
  class Sleeper {
   public:
    virtual ~Sleeper() = default;
    virtual void wake() noexcept = 0;  // any thread
  };

  // Called by the thread that had all to itself: before the other starts, and after it has ended.
  void share_with(Sleeper& sleeper) noexcept { sleeper_ = &sleeper; }
  void share_no_more() noexcept { sleeper_ = nullptr; }
  [[nodiscard]] bool shared() const noexcept { return sleeper_ != nullptr; }

  // In a turn of the sleeper's: from now on it has to be woken. And when it is awake.
  void goes_to_sleep() noexcept { asleep_.store(true, std::memory_order_relaxed); }
  void woke_up() noexcept { asleep_.store(false, std::memory_order_relaxed); }

  template <bool may_leave_work>
  class Turn {
   public:
    explicit Turn(Turns& turns) noexcept : turns_(turns.shared() ? &turns : nullptr) {
      if (turns_ != nullptr) turns_->take();
    }
    ~Turn() {
      if (turns_ == nullptr) return;
      const bool wakes = may_leave_work && turns_->asleep_.load(std::memory_order_relaxed);
      turns_->give();
      if (wakes) turns_->sleeper_->wake();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Turns* turns_;
  };
  using Look = Turn<false>;
  using Call = Turn<true>;

 private:
  static constexpr unsigned looks_before_yield = 256;

  // In the order asked for: who takes turn after turn would shut the other out otherwise.
  void take() noexcept {
    const std::uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
    for (unsigned looks = 1; serving_.load(std::memory_order_acquire) != mine; ++looks) {
      if (looks % looks_before_yield == 0) ::sched_yield();
    }
  }
  void give() noexcept { serving_.store(serving_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  Sleeper* sleeper_ = nullptr;
  std::atomic<std::uint32_t> next_{0};
  std::atomic<std::uint32_t> serving_{0};
  std::atomic<bool> asleep_{false};
};

}  // namespace verbatim
