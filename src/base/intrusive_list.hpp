// A list whose links lie in its elements: nothing is allocated, and an element leaves in O(1). An element is in one
// list per hook at a time; lists don't own.
#pragma once

namespace verbatim {

template <typename T>
struct ListHook {
  T* next = nullptr;
  T* previous = nullptr;
};

template <typename T, ListHook<T> T::*hook>
class IntrusiveList {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] T* front() const noexcept { return first_; }
  [[nodiscard]] static T* after(const T& element) noexcept { return (element.*hook).next; }

  void push_back(T& element) noexcept {
    (element.*hook) = {nullptr, last_};
    (last_ != nullptr ? (last_->*hook).next : first_) = &element;
    last_ = &element;
  }

  void remove(T& element) noexcept {
    ListHook<T>& links = element.*hook;
    (links.previous != nullptr ? (links.previous->*hook).next : first_) = links.next;
    (links.next != nullptr ? (links.next->*hook).previous : last_) = links.previous;
    links = {};
  }

  T* pop_front() noexcept {
    T* const element = first_;
    if (element != nullptr) remove(*element);
    return element;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace verbatim
