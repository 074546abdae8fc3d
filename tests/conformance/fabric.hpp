// Two endpoints that can reach each other, and the time in which they do. One implementation is linked into each
// conformance program; the tests are the same.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "conformance/endpoint.hpp"

namespace verbatim::conformance {

class Fabric {
 public:
  virtual ~Fabric() = default;
  [[nodiscard]] virtual Endpoint& a() = 0;
  [[nodiscard]] virtual Endpoint& b() = 0;
  // Lets time go on until the predicate holds; false if it still did not after `patience`.
  [[nodiscard]] virtual bool wait_until(const std::function<bool()>& predicate, Duration patience) = 0;
  // Lets time go on for as long.
  virtual void advance(Duration duration) = 0;
  [[nodiscard]] virtual Time now() const = 0;
};

// A fresh one, devices not yet open. Made for each test, before anything else.
[[nodiscard]] std::unique_ptr<Fabric> make_fabric();

// Why there is no device to test, or nothing if there is one. Asked once, before the first test.
[[nodiscard]] std::optional<std::string> why_no_fabric();

}  // namespace verbatim::conformance
