#include "conformance/serve.hpp"

#include <stdexcept>

#include "conformance/calls.hpp"

namespace verbatim::conformance {

void serve(Endpoint& endpoint, Link& link) {
  while (auto message = link.receive(idle_patience)) {
    Reader call(std::move(*message));
    Writer result;
    result.put(Outcome::done);
    try {
      const auto number = call.get<std::uint32_t>();
      Calls::carry_out.at(number)(endpoint, call, result);
    } catch (const std::exception& failure) {
      result = {};
      result.put(Outcome::failed);
      result.put(std::string(failure.what()));
    }
    link.send(result.bytes());
  }
}

}  // namespace verbatim::conformance
