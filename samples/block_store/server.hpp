// Serves the blocks of a file from memory that clients may reach, and writes what they put into the file.
#pragma once

#include <atomic>
#include <string>

namespace block_store {

// Until `stop`, to as many clients as come. Throws std::exception for what can't be served; a client that fails is
// left.
void serve(const std::string& file, const std::string& address, const std::atomic<bool>& stop);

}  // namespace block_store
