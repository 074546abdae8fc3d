// The whole library in one include.
#pragma once

#include "verbatim/channel.hpp"
#include "verbatim/config.hpp"
#include "verbatim/context.hpp"
#include "verbatim/error.hpp"
#include "verbatim/region.hpp"
#include "verbatim/request.hpp"
#include "verbatim/types.hpp"
#include "verbatim/worker.hpp"
