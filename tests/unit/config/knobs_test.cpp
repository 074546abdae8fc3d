// Each row of the table is about one member, and there is a row for each member.
#include "base/config/knobs.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace verbatim::config {
namespace {

// The members as they are declared: `struct … {`, a type, a name, a default; the member of a nested struct at its end.
std::set<std::string> declared_members() {
  std::ifstream file(VERBATIM_SOURCE_DIR "/include/verbatim/config.hpp");
  const std::regex member(R"(^    [\w:]+ (\w+)( = [^;]*)?;.*)");
  const std::regex end_of_table(R"(^  \} (\w+);)");
  std::set<std::string> names;
  std::set<std::string> of_table;
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (std::regex_match(line, found, member)) of_table.insert(found[1]);
    if (!std::regex_match(line, found, end_of_table)) continue;
    for (const std::string& name : of_table) names.insert(found[1].str() + "." + name);
    of_table.clear();
  }
  return names;
}

TEST(ConfigKnobs, AreTheMembersOfTheStruct) {
  std::set<std::string> names;
  for (const Knob& knob : knobs()) EXPECT_TRUE(names.insert(full_name(knob)).second) << full_name(knob);
  EXPECT_EQ(names, declared_members());
  EXPECT_GT(names.size(), 30U);
}

TEST(ConfigKnobs, HaveAMemberOfTheirOwn) {
  Config config;
  std::set<const void*> members;
  for (const Knob& knob : knobs()) {
    const void* member = std::visit([](const auto* at) -> const void* { return at; }, knob.member(config));
    EXPECT_TRUE(members.insert(member).second) << full_name(knob);
  }
}

TEST(ConfigKnobs, BelongToATableAndSayWhy) {
  for (const Knob& knob : knobs()) {
    EXPECT_TRUE(std::any_of(tables().begin(), tables().end(), [&](const Table& t) { return t.name == knob.table; }));
    EXPECT_TRUE(knob.sentence.ends_with('.')) << full_name(knob);
    EXPECT_EQ(find_knob(knob.table, knob.name), &knob);
  }
  EXPECT_EQ(find_knob("rc", "max_bytes"), nullptr);
}

TEST(ConfigKnobs, ReadWhatTheyShow) {
  for (const Knob& knob : knobs()) {
    Config config;
    set(config, knob, {"test", full_name(knob), show_bare(Config{}, knob)});
    EXPECT_EQ(show(config, knob), show(Config{}, knob)) << full_name(knob);
  }
}

TEST(ConfigKnobs, AreWrittenAsPeopleWriteThem) {
  const Config config;
  const auto shown = [&](const char* table, const char* name) { return show(config, *find_knob(table, name)); };
  EXPECT_EQ(shown("device", "name"), "\"auto\"");
  EXPECT_EQ(shown("device", "gid_index"), "\"auto\"");
  EXPECT_EQ(shown("device", "pkey"), "0xffff");
  EXPECT_EQ(shown("rc", "rnr_timer"), "\"640us\"");
  EXPECT_EQ(shown("eager", "max_bytes"), "\"8KiB\"");
  EXPECT_EQ(shown("rc", "retry_count"), "7");
  EXPECT_EQ(shown("worker", "wait"), "\"adaptive\"");
  EXPECT_EQ(variable_of(*find_knob("write_queue", "max_per_worker")), "VERBATIM_WRITE_QUEUE_MAX_PER_WORKER");
}

}  // namespace
}  // namespace verbatim::config
