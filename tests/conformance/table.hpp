// Objects by handle. Handles are never given twice, so one that outlived its object is caught.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>

namespace verbatim::conformance {

template <class HandleType, class Object>
class Table {
 public:
  HandleType insert(Object object) {
    objects_.emplace(next_, std::move(object));
    return HandleType{next_++};
  }

  Object& at(HandleType handle) {
    const auto found = objects_.find(handle.value);
    if (found == objects_.end())
      throw std::logic_error(fmt::format("the test used handle {}, which names nothing", handle.value));
    return found->second;
  }

  // Calls `destroy(object)`, which returns 0 or errno, and forgets the object if that was 0.
  template <class Destroy>
  int destroy(HandleType handle, Destroy destroy) {
    const int error = destroy(at(handle));
    if (error == 0) objects_.erase(handle.value);
    return error;
  }

  // The first errno, or 0. Forgets all of them.
  template <class Destroy>
  int destroy_all(Destroy destroy) {
    int first_error = 0;
    for (auto& [number, object] : objects_) {
      const int error = destroy(object);
      if (first_error == 0) first_error = error;
    }
    objects_.clear();
    return first_error;
  }

  template <class Predicate>
  HandleType find(Predicate predicate) const {
    for (const auto& [number, object] : objects_) {
      if (predicate(object)) return HandleType{number};
    }
    return {};
  }

 private:
  std::map<std::int32_t, Object> objects_;
  std::int32_t next_ = 0;
};

}  // namespace verbatim::conformance
