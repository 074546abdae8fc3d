// The project held to the rules in rules.hpp; and, on small samples in memory, that each rule bites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>

#include "architecture/checks.hpp"
#include "architecture/rules.hpp"
#include "architecture/tree.hpp"

namespace verbatim::architecture {
namespace {

const Tree& project() {
  static const Tree tree = read_tree(VERBATIM_SOURCE_DIR);
  return tree;
}

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A rule that finds no file to judge holds for nothing.
TEST(Architecture, TheProjectIsRead) {
  EXPECT_TRUE(project().contains("src/device/context.hpp"));
  EXPECT_TRUE(project().contains("tests/architecture/architecture_test.cpp"));
  EXPECT_TRUE(project().contains("docs/architecture.md"));
  EXPECT_TRUE(project().contains(".ci/run"));
}

TEST(Architecture, IncludesPointDown) {
  EXPECT_THAT(check_floors(project()), IsEmpty());
}

TEST(Architecture, EverySourceHasAFloor) {
  EXPECT_THAT(check_every_source_has_a_floor(project()), IsEmpty());
}

TEST(Architecture, ProtocolCodeIsDeterministic) {
  EXPECT_THAT(check_protocol_code(project()), IsEmpty());
}

TEST(Architecture, TextsSpeakOfTheProductAlone) {
  EXPECT_THAT(check_texts(project()), IsEmpty());
}

TEST(Architecture, LinksOfTheDocsLeadSomewhere) {
  EXPECT_THAT(check_links(project()), IsEmpty());
}

// ---- each rule bites
// --------------------------------------------------------------------------------------------------

// A project of two files: `includer`, which includes `included`.
Tree sample(const std::string& includer, const std::string& included) {
  return {{includer, "#pragma once\n#include \"" + included.substr(included.find('/') + 1) + "\"\n"}, {included, ""}};
}

struct Crossing {
  std::string includer;
  std::string included;
  friend void PrintTo(const Crossing& crossing, std::ostream* stream) {
    *stream << crossing.includer << " includes " << crossing.included;
  }
};
class ForbiddenInclude : public ::testing::TestWithParam<Crossing> {};
TEST_P(ForbiddenInclude, IsFound) {
  EXPECT_THAT(check_floors(sample(GetParam().includer, GetParam().included)),
              ElementsAre(GetParam().includer + ":2: must not include " + GetParam().included));
}
INSTANTIATE_TEST_SUITE_P(
    Architecture, ForbiddenInclude,
    ::testing::Values(Crossing{"src/base/log.cpp", "src/device/provider.hpp"},
                      Crossing{"src/device/soft/verbs/qp.cpp", "src/device/ibverbs/provider.hpp"},
                      Crossing{"src/device/ibverbs/mr.cpp", "src/device/soft/provider.hpp"},
                      Crossing{"src/device/soft/engine/requester.cpp", "src/device/soft/shm/ring.hpp"},
                      Crossing{"src/device/soft/engine/requester.cpp", "src/device/soft/verbs/qp.hpp"},
                      Crossing{"src/device/open.cpp", "src/device/soft/engine/packet.hpp"},
                      Crossing{"src/device/context.hpp", "src/mem/region.hpp"},
                      Crossing{"src/device/soft/engine/requester.cpp", "src/qp/units.hpp"},
                      Crossing{"src/device/queue_pair/names.cpp", "src/device/context.hpp"},
                      Crossing{"src/mem/region.cpp", "src/qp/pool.hpp"},
                      Crossing{"src/mem/region.cpp", "src/device/soft/provider.hpp"},
                      Crossing{"src/qp/pool.cpp", "src/transport/channel.hpp"},
                      Crossing{"src/transport/channel.cpp", "src/device/ibverbs/provider.hpp"},
                      Crossing{"include/verbatim/worker.hpp", "src/transport/worker.hpp"},
                      Crossing{"apps/info/main.cpp", "src/device/soft/engine/packet.hpp"},
                      Crossing{"src/transport/channel.cpp", "apps/info/table.hpp"}));

TEST(ArchitectureRules, AllowedIncludesPass) {
  EXPECT_THAT(check_floors(sample("src/qp/pool.cpp", "src/device/context.hpp")), IsEmpty());
  EXPECT_THAT(check_floors(sample("src/device/soft/shm/wire.cpp", "src/device/soft/engine/packet.hpp")), IsEmpty());
  EXPECT_THAT(check_floors(sample("tests/unit/soft/packet_test.cpp", "src/device/soft/engine/packet.hpp")), IsEmpty());
}

TEST(ArchitectureRules, AnIncludeIsFoundHoweverItIsWritten) {
  EXPECT_THAT(check_floors({{"src/base/a.hpp", "  #  include <device/b.hpp>  // why"}, {"src/device/b.hpp", ""}}),
              ElementsAre("src/base/a.hpp:1: must not include src/device/b.hpp"));
  EXPECT_THAT(check_floors({{"src/base/a.hpp", "/* \" */\n#include \"../device/b.hpp\""}, {"src/device/b.hpp", ""}}),
              ElementsAre("src/base/a.hpp:2: must not include src/device/b.hpp"));
  EXPECT_THAT(check_floors({{"src/base/a.hpp", "// #include \"device/b.hpp\"\n"}, {"src/device/b.hpp", ""}}),
              IsEmpty());
}

TEST(ArchitectureRules, AnIncludeOfNothingIsFound) {
  EXPECT_THAT(check_floors({{"src/qp/a.cpp", "#include \"qp/gone.hpp\""}}),
              ElementsAre(HasSubstr("not in the project")));
}

TEST(ArchitectureRules, VerbsAreSeenByTheirFloorsOnly) {
  for (const char* path : {"src/base/a.hpp", "src/transport/a.hpp", "include/verbatim/a.hpp", "apps/a.cpp"}) {
    EXPECT_THAT(check_floors({{path, "#include <infiniband/verbs.h>"}}), ElementsAre(HasSubstr("must not see verbs")));
  }
  for (const char* path : {"src/device/a.hpp", "src/mem/a.hpp", "src/qp/a.hpp", "tests/unit/a.cpp"}) {
    EXPECT_THAT(check_floors({{path, "#include <infiniband/verbs.h>"}}), IsEmpty());
  }
}

TEST(ArchitectureRules, ASourceOffTheFloorsIsFound) {
  EXPECT_THAT(check_every_source_has_a_floor({{"src/util/a.hpp", ""}}),
              ElementsAre("src/util/a.hpp: lies on no floor"));
}

class ForbiddenInProtocolCode : public ::testing::TestWithParam<std::string_view> {};
TEST_P(ForbiddenInProtocolCode, IsFound) {
  const std::string use = "void f() {\n  g(" + std::string(GetParam()) + " );\n}\n";
  for (const char* path :
       {"src/transport/a.cpp", "src/transport/control/a.cpp", "src/qp/a.hpp", "src/device/soft/engine/a.cpp"}) {
    EXPECT_THAT(check_protocol_code({{path, use}}), ElementsAre(HasSubstr(":2: protocol code must not use")));
  }
  EXPECT_THAT(check_protocol_code({{"src/device/soft/shm/a.cpp", use},
                                   {"src/device/soft/verbs/b.cpp", use},
                                   {"src/transport/host/c.cpp", use}}),
              IsEmpty());
  const std::string word(GetParam());
  EXPECT_THAT(check_protocol_code({{"src/qp/a.cpp", "// " + word + ")\n/*\n" + word + " */ x = \"" + word + "\";"}}),
              IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(Architecture, ForbiddenInProtocolCode, ::testing::ValuesIn(not_in_protocol_code));

class ForbiddenIncludeInProtocolCode : public ::testing::TestWithParam<std::string_view> {};
TEST_P(ForbiddenIncludeInProtocolCode, IsFound) {
  const std::string header(GetParam().substr(GetParam().starts_with("src/") ? 4 : 0));
  Tree tree = {{"src/qp/a.cpp", "#include <" + header + ">\n"}};
  if (header != GetParam()) tree.emplace(GetParam(), "");
  EXPECT_THAT(check_protocol_code(tree), ElementsAre(HasSubstr(":1: protocol code must not include")));
}
INSTANTIATE_TEST_SUITE_P(Architecture, ForbiddenIncludeInProtocolCode,
                         ::testing::ValuesIn(no_include_in_protocol_code));

TEST(ArchitectureRules, WordsAreWholeWords) {
  EXPECT_THAT(check_protocol_code({{"src/qp/a.cpp", "operand(x); std::this_thread_id; q.asleep(); n = 1'000;"}}),
              IsEmpty());
}

// Written apart, so that this file keeps the rule that it tests.
const std::string slash = "/";
const std::string hash = "#";

TEST(ArchitectureRules, BannedTextsAreFound) {
  for (const auto& line :
       {"see " + slash + "home/alice/verbatim", "cd " + slash + "work/main", "'" + slash + "Users/bob'"}) {
    EXPECT_THAT(check_texts({{"docs/a.md", line}}), ElementsAre(HasSubstr("developer's machine"))) << line;
  }
  for (const auto& line :
       {"fixes " + hash + "12", "(" + hash + "7)", "see issue " + hash + "3", "a/kernel" + hash + "9"}) {
    EXPECT_THAT(check_texts({{"src/a.cpp", line}}), Contains(HasSubstr("issue's number"))) << line;
  }
}

TEST(ArchitectureRules, OrdinaryTextsPass) {
  const std::string text = "[one](docs/a.md#1-words), printf(\"%#010x\"), /scratch/work, $HOME/x, #ff0000";
  EXPECT_THAT(check_texts({{"a.md", text}}), IsEmpty());
  EXPECT_THAT(check_texts({{"LICENSE", hash + "1"}}), IsEmpty());
}

TEST(ArchitectureRules, ADeadLinkIsFound) {
  const Tree tree = {
      {"docs/a.md", "[b](b.md) [up](../README.md#why) [web](https://example.org/x) [here](#top) [s](../src)"},
      {"README.md", "[a](docs/a.md)\nand [gone](docs/gone.md)"},
      {"src/a.cpp", ""}};
  EXPECT_THAT(check_links(tree),
              ElementsAre(HasSubstr("README.md:2: links to docs/gone.md"), HasSubstr("docs/a.md:1: links to b.md")));
}

}  // namespace
}  // namespace verbatim::architecture
