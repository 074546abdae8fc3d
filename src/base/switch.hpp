// A knob's three positions, for the floors below the public headers.
#pragma once

#include "verbatim/config.hpp"
