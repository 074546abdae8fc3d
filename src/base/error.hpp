// The library's error, for the floors below the public headers.
#pragma once

#include "verbatim/error.hpp"
