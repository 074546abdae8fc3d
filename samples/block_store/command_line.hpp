// What block_store is asked to do.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

#include "client.hpp"

namespace block_store {

inline constexpr const char* usage =
    "usage: block_store serve FILE [--listen ADDRESS]\n"
    "       block_store put FILE ADDRESS [--by put|put_notify|send]\n"
    "       block_store get FILE ADDRESS [--by get|recv]\n"
    "       block_store verify FILE ADDRESS [--by get|recv]\n"
    "\n"
    "serve   serves the blocks of FILE, and writes what is put into it, until it is interrupted\n"
    "put     puts every block of FILE, which must be as long as the file that is served\n"
    "get     gets every block and writes them to FILE\n"
    "verify  gets every block and compares them with FILE\n";

enum class Command { serve, put, get, verify };

struct CommandLine {
  Command command;
  std::string file;
  std::string address;  // of serve: where to listen; empty leaves it to the configuration
  PutBy put_by = PutBy::put;
  GetBy get_by = GetBy::get;
};

// A command line that can't be understood: the sentence says what is wrong with it.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[nodiscard]] CommandLine parse(std::span<char* const> arguments);

}  // namespace block_store
