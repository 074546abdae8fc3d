// A block store: a server keeps a file in memory that clients reach, they put and get its blocks, and a checksum says
// whether each arrived as it left.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "client.hpp"
#include "command_line.hpp"
#include "file.hpp"
#include "server.hpp"

namespace block_store {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal's handler writes it");

void serve_until_interrupted(const CommandLine& line) {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { interrupted = true; });
  serve(line.file, line.address, interrupted);
}

void put(const CommandLine& line) {
  std::vector<std::byte> file = read_file(line.file);
  const std::size_t bytes = file.size();
  Client client(line.address);
  if (bytes != client.file_bytes()) {
    throw std::runtime_error(line.file + " has " + std::to_string(bytes) + " bytes, but the file that " + line.address +
                             " serves has " + std::to_string(client.file_bytes()) + "; they must be equally long");
  }
  client.put(std::move(file), line.put_by);
  std::printf("put %zu blocks of %s\n", blocks_of(bytes), line.file.c_str());
}

void get(const CommandLine& line) {
  Client client(line.address);
  write_file(line.file, client.get(line.get_by));
  std::printf("got %zu blocks into %s\n", blocks_of(client.file_bytes()), line.file.c_str());
}

void verify(const CommandLine& line) {
  const std::vector<std::byte> expected = read_file(line.file);
  Client client(line.address);
  const std::vector<std::byte>& actual = client.get(line.get_by);
  const auto [differs, _] = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  const auto same = static_cast<std::size_t>(differs - expected.begin());
  if (same != expected.size() || same != actual.size()) {
    throw std::runtime_error(line.file + " is not what " + line.address + " serves: they differ from byte " +
                             std::to_string(same) + " on");
  }
  std::printf("verified %zu blocks of %s\n", blocks_of(expected.size()), line.file.c_str());
}

void run(const CommandLine& line) {
  switch (line.command) {
    case Command::serve:
      return serve_until_interrupted(line);
    case Command::put:
      return put(line);
    case Command::get:
      return get(line);
    case Command::verify:
      return verify(line);
  }
}

}  // namespace
}  // namespace block_store

int main(int count, char** arguments) {
  try {
    block_store::run(block_store::parse({arguments + 1, arguments + count}));
    return 0;
  } catch (const block_store::UsageError& error) {
    std::fprintf(stderr, "block_store: %s\n\n%s", error.what(), block_store::usage);
    return 64;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "block_store: %s\n", error.what());
    return 1;
  }
}
