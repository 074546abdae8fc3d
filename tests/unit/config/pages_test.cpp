// conf/verbatim.toml and verbatim.toml(5) show the table of knobs, and this test holds them to that.
#include "base/config/pages.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "unit/config/files.hpp"

namespace verbatim::config {
namespace {

const std::string sample_path = VERBATIM_SOURCE_DIR "/conf/verbatim.toml";
const std::string manual_path = VERBATIM_SOURCE_DIR "/docs/man/verbatim.toml.5";

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_page(const std::string& path, const std::string& expected) {
  if (std::getenv("VERBATIM_REWRITE_DOCS") != nullptr) {
    std::ofstream(path) << expected;
  } else {
    EXPECT_EQ(contents(path), expected) << "VERBATIM_REWRITE_DOCS=1 writes it anew";
  }
}

TEST(ConfigPages, SampleFileShowsEveryKnob) {
  expect_page(sample_path, sample_file());
}

TEST(ConfigPages, ManualListsEveryKnob) {
  const std::string begin_mark = ".\\\" generated: knobs\n";
  const std::string end_mark = ".\\\" end of what is generated\n";
  std::string page = contents(manual_path);
  const std::size_t begin = page.find(begin_mark);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find(end_mark, begin);
  ASSERT_NE(end, std::string::npos);
  page.replace(begin + begin_mark.size(), end - begin - begin_mark.size(), manual_list());
  expect_page(manual_path, page);
}

class ConfigSample : public Files {};

TEST_F(ConfigSample, ReadAsItStandsChangesNothing) {
  ConfigSources sources;
  sources.file = sample_path;
  sources.strict = true;
  for (const Origin& origin : load_with(sources).origins) EXPECT_EQ(origin.from, ConfigOrigin::built_in);
}

TEST_F(ConfigSample, WithItsMarksTakenAwayIsTheDefaults) {
  const std::string text = std::regex_replace(contents(sample_path), std::regex("\n#(\\w+ = )"), "\n$1");
  ConfigSources sources;
  sources.file = write("all.toml", std::regex_replace(text, std::regex("\nprofile = [^\n]*"), ""));
  sources.strict = true;
  const LoadedConfig loaded = load_with(sources);
  for (const Knob& knob : knobs()) {
    EXPECT_EQ(show(loaded.config, knob), show(Config{}, knob)) << full_name(knob);
    EXPECT_EQ(origin_of(loaded, knob.table, knob.name).from, ConfigOrigin::user_file) << full_name(knob);
  }
}

TEST(ConfigPages, BreakLinesBetweenWords) {
  EXPECT_EQ(wrapped("one two three", "# ", 9), "# one two\n# three\n");
  EXPECT_EQ(wrapped("indivisible", "# ", 4), "# indivisible\n");
}

}  // namespace
}  // namespace verbatim::config
