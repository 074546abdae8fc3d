// The far side of a RemoteEndpoint: carries out what comes over the link until the link is closed.
#pragma once

#include <chrono>

#include "conformance/endpoint.hpp"
#include "conformance/link.hpp"

namespace verbatim::conformance {

// How long the served process waits for the next call: longer than any test thinks.
inline constexpr std::chrono::minutes idle_patience{10};

// First byte of an answer. A failure is followed by its sentence.
enum class Outcome : std::uint8_t { done, failed };

void serve(Endpoint& endpoint, Link& link);

}  // namespace verbatim::conformance
