#include "command_line.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace block_store {
namespace {

template <typename Value>
using Names = std::initializer_list<std::pair<std::string_view, Value>>;

template <typename Value>
[[nodiscard]] Value named(std::string_view what, std::string_view name, Names<Value> names) {
  std::string known;
  for (const auto& [is, value] : names) {
    if (name == is) return value;
    known += (known.empty() ? "" : ", ") + std::string(is);
  }
  throw UsageError("'" + std::string(name) + "' is no " + std::string(what) + "; there are " + known);
}

}  // namespace

CommandLine parse(std::span<char* const> arguments) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (words.size() < 2) throw UsageError("a command and a FILE are needed");
  CommandLine line{
      .command = named<Command>(
          "command", words[0],
          {{"serve", Command::serve}, {"put", Command::put}, {"get", Command::get}, {"verify", Command::verify}}),
      .file = words[1],
      .address = {}};
  std::size_t at = 2;
  const bool serves = line.command == Command::serve;
  if (!serves) {
    if (words.size() < 3) throw UsageError(words[0] + " needs the ADDRESS that the server printed");
    line.address = words[at++];
  }
  if (at == words.size()) return line;

  const std::string option = serves ? "--listen" : "--by";
  if (words[at] != option) throw UsageError("'" + words[at] + "' is not understood; " + option + " may stand there");
  if (words.size() != at + 2) throw UsageError(option + " takes one value, and nothing may follow");
  const std::string& value = words[at + 1];
  if (serves) {
    line.address = value;
  } else if (line.command == Command::put) {
    line.put_by = named<PutBy>("way to put", value,
                               {{"put", PutBy::put}, {"put_notify", PutBy::put_notify}, {"send", PutBy::send}});
  } else {
    line.get_by = named<GetBy>("way to get", value, {{"get", GetBy::get}, {"recv", GetBy::recv}});
  }
  return line;
}

}  // namespace block_store
