// What a Region holds: registered memory, and the worker's ground, which so outlives it.
#pragma once

#include <memory>
#include <utility>

#include "mem/region.hpp"
#include "transport/engine.hpp"
#include "verbatim/region.hpp"

namespace verbatim {

struct Region::State {
  State(std::shared_ptr<void> keep, transport::Engine& of, mem::RegisteredRegion registered)
      : ground(std::move(keep)), engine(of), region(std::move(registered)) {
    engine.remember_region(region);
  }
  ~State() {
    const Turns::Look turn(engine.turns());
    engine.forget_region(region);
    region = {};
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::shared_ptr<void> ground;
  transport::Engine& engine;
  mem::RegisteredRegion region;
};

}  // namespace verbatim
