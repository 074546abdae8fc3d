// Where values come from and which counts, what is warned of, and what is refused with place, name, value and range.
#include "base/config/load.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>

#include "base/config/profiles.hpp"
#include "unit/config/files.hpp"

namespace verbatim::config {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class ConfigSource : public Files {};
class ConfigText : public Files {};
class ConfigName : public Files {};

// -- order -----------------------------------------------------------------------------------------------------------

TEST_F(ConfigSource, IsTheStructItselfWhereNothingIsSet) {
  const LoadedConfig loaded = load_with({}, {{"PATH", "/bin"}, {"HOME", folder}});
  for (const Knob& knob : knobs()) EXPECT_EQ(show(loaded.config, knob), show(Config{}, knob)) << full_name(knob);
  for (const Origin& origin : loaded.origins) EXPECT_EQ(origin.from, ConfigOrigin::built_in);
  EXPECT_THAT(warnings, IsEmpty());
}

// Each source in turn, from the weakest: it beats all before it, and says that it was it.
TEST_F(ConfigSource, CountsTheStrongerTheCloserToTheProgram) {
  ConfigSources sources;
  Environment environment{{std::string(system_config_variable), write("system.toml", "")},
                          {std::string(config_variable), write("user.toml", "")}};
  const auto expect = [&](std::uint32_t depth, ConfigOrigin from, const std::string& place) {
    const LoadedConfig loaded = load_with(sources, environment);
    EXPECT_EQ(loaded.config.rc.receive_depth, depth);
    EXPECT_EQ(origin_of(loaded, "rc", "receive_depth").from, from);
    EXPECT_THAT(origin_of(loaded, "rc", "receive_depth").place, EndsWith(place));
    EXPECT_EQ(origin_of(loaded, "rc", "reads").from, ConfigOrigin::built_in);
  };
  expect(128, ConfigOrigin::built_in, "");
  environment[std::string(profile_variable)] = "throughput";
  expect(512, ConfigOrigin::profile, ":5");
  write("system.toml", "[rc]\nreceive_depth = 100\n");
  expect(100, ConfigOrigin::system_file, "system.toml:2");
  write("user.toml", "\n[rc]\nreceive_depth = 200\n");
  expect(200, ConfigOrigin::user_file, "user.toml:3");
  environment["VERBATIM_RC_RECEIVE_DEPTH"] = "300";
  expect(300, ConfigOrigin::environment, "VERBATIM_RC_RECEIVE_DEPTH");
  sources.overrides = {"rc.receive_depth=400"};
  expect(400, ConfigOrigin::program, "rc.receive_depth=400");
  sources.overrides.push_back(" rc.receive_depth = 500 ");
  expect(500, ConfigOrigin::program, " rc.receive_depth = 500 ");
}

TEST_F(ConfigSource, FindsTheUsersFileWhereTheDesktopSpecificationPutsIt) {
  std::filesystem::create_directories(folder + "/.config");
  write(".config/verbatim.toml", "[rc]\nreads = 3\n");
  EXPECT_EQ(load_with({}, {{"HOME", folder}}).config.rc.reads, 3U);
  EXPECT_EQ(load_with({}, {{"HOME", folder}, {"XDG_CONFIG_HOME", "relative"}}).config.rc.reads, 3U);
  write("verbatim.toml", "[rc]\nreads = 4\n");
  EXPECT_EQ(load_with({}, {{"HOME", folder}, {"XDG_CONFIG_HOME", folder}}).config.rc.reads, 4U);
  const std::string named = write("named.toml", "[rc]\nreads = 5\n");
  EXPECT_EQ(load_with({}, {{"HOME", folder}, {"VERBATIM_CONFIG", named}}).config.rc.reads, 5U);
  ConfigSources sources;
  sources.file = write("given.toml", "[rc]\nreads = 6\n");
  EXPECT_EQ(load_with(sources, {{"HOME", folder}, {"VERBATIM_CONFIG", named}}).config.rc.reads, 6U);
}

TEST_F(ConfigSource, IsMissedWhereSomebodyNamedIt) {
  ConfigSources sources;
  sources.file = "/nowhere/verbatim.toml";
  EXPECT_THAT(refusal([&] { return load_with(sources); }, ErrorCode::not_found), HasSubstr("/nowhere/verbatim.toml"));
  for (const auto variable : {config_variable, system_config_variable}) {
    EXPECT_THAT(refusal(
                    [&] {
                      return load_with({}, {{std::string(variable), "/nowhere/verbatim.toml"}});
                    },
                    ErrorCode::not_found),
                AllOf(HasSubstr(std::string(variable)), HasSubstr("/nowhere/verbatim.toml")));
  }
}

TEST_F(ConfigSource, IsThisProcess) {
  const Environment environment{{"VERBATIM_RC_READS", "9"},
                                {"VERBATIM_SYSTEM_CONFIG", write("system.toml", "[rc]\nretry_count = 4\nreads = 8\n")},
                                {"VERBATIM_CONFIG", write("user.toml", "[rc]\nretry_count = 5\n")}};
  for (const auto& [name, text] : environment) ::setenv(name.c_str(), text.c_str(), 1);
  const Config config = load_config();
  for (const auto& [name, text] : environment) ::unsetenv(name.c_str());
  EXPECT_EQ(config.rc.reads, 9U);
  EXPECT_EQ(config.rc.retry_count, 5U);
}

TEST_F(ConfigSource, IsAFileAndNoFolder) {
  EXPECT_THAT(refusal(
                  [&] {
                    return load_with({}, {{"VERBATIM_CONFIG", folder}});
                  },
                  ErrorCode::not_found),
              AllOf(HasSubstr("VERBATIM_CONFIG"), HasSubstr("directory")));
}

TEST_F(ConfigSource, IsNoPipeAndNoEndlessDevice) {
  const std::string pipe = folder + "/pipe.toml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    EXPECT_THAT(refusal(
                    [&] {
                      return load_with({}, {{"VERBATIM_CONFIG", path}});
                    },
                    ErrorCode::not_found),
                AllOf(HasSubstr(path), HasSubstr("regular file")));
  }
  EXPECT_EQ(load_with({}, {{"VERBATIM_CONFIG", "/dev/null"}}).config.rc.reads, Config().rc.reads);
}

// -- profiles --------------------------------------------------------------------------------------------------------

TEST_F(ConfigSource, TakesTheProfileOfWhoeverIsClosest) {
  ConfigSources sources;
  Environment environment{{std::string(system_config_variable), write("system.toml", "profile = 'throughput'\n")},
                          {std::string(config_variable), write("user.toml", "")}};
  EXPECT_EQ(load_with(sources, environment).profile, "throughput");
  write("user.toml", "profile = 'latency'\n");
  EXPECT_EQ(load_with(sources, environment).profile, "latency");
  environment[std::string(profile_variable)] = "development";
  EXPECT_EQ(load_with(sources, environment).profile, "development");
  sources.profile = "throughput";
  EXPECT_EQ(load_with(sources, environment).profile, "throughput");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(ConfigSource, ComesWithProfilesThatFitTogether) {
  std::vector<std::string> names;
  for (const Profile& profile : profiles()) {
    ConfigSources sources;
    sources.profile = profile.name;
    sources.strict = true;
    EXPECT_NO_THROW(check(load_with(sources).config)) << profile.name;
    names.emplace_back(profile.name);
  }
  EXPECT_THAT(names, ElementsAre("latency", "throughput", "development"));
}

TEST_F(ConfigSource, HasAProfileThatShowsRaces) {
  ConfigSources sources;
  sources.profile = "development";
  const Config config = load_with(sources).config;
  EXPECT_EQ(config.rc.retry_count, 0);
  EXPECT_EQ(config.rc.rnr_retry_count, 0);
  EXPECT_FALSE(config.recovery.enabled);
}

TEST_F(ConfigSource, SaysWhichProfilesThereAre) {
  EXPECT_THAT(refusal(
                  [&] {
                    return load_text("[rc]\n\n[eager]\n", {{"VERBATIM_PROFILE", "fast"}});
                  },
                  ErrorCode::not_found),
              AllOf(HasSubstr("VERBATIM_PROFILE"), HasSubstr("'fast'"), HasSubstr("latency, throughput, development")));
  EXPECT_THAT(refusal([&] { return load_text("\nprofile = 'fast'\n"); }, ErrorCode::not_found),
              AllOf(HasSubstr("user.toml:2"), HasSubstr("'fast'")));
}

// -- how values are written ------------------------------------------------------------------------------------------

TEST_F(ConfigText, OfEachKindIsRead) {
  const Config config = load_text(
                            "[device]\nname = 'mlx5_0:2'\npkey = 0x8001\ngid_index = 3\nmtu_bytes = '1KiB'\n"
                            "[rc]\nreceive_depth = 1_000\nack_timeout = '1.5s'\n"
                            "[eager]\nmax_bytes = 4096\n"
                            "[write_queue]\nenabled = 'off'\n"
                            "[memory]\nregistration_cache_bytes = 'unlimited'\nnuma_node = 'auto'\n"
                            "[worker]\nwait = 'event'\n")
                            .config;
  EXPECT_EQ(config.device.name, "mlx5_0:2");
  EXPECT_EQ(config.device.pkey, 0x8001);
  EXPECT_EQ(config.device.gid_index, 3);
  EXPECT_EQ(config.device.mtu_bytes, 1024U);
  EXPECT_EQ(config.rc.receive_depth, 1000U);
  EXPECT_EQ(config.rc.ack_timeout, 1500ms);
  EXPECT_EQ(config.eager.max_bytes, 4096U);
  EXPECT_EQ(config.write_queue.enabled, Switch::off);
  EXPECT_EQ(config.memory.registration_cache_bytes, UINT64_MAX);
  EXPECT_EQ(config.memory.numa_node, -1);
  EXPECT_EQ(config.worker.wait, WaitMode::event);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(ConfigText, MayHaveCarriageReturnsAndSpacesAtTheEnd) {
  const Config config =
      load_text("[rc] \r\nreads = 7 \t\r\nack_timeout = '10ms ' # slow\r\n\r\n[worker]\r\nwait = ' poll'\r\n",
                {{"VERBATIM_RC_SEND_DEPTH", " 64\r"}, {"VERBATIM_DEVICE_NAME", "mlx5_1 "}})
          .config;
  EXPECT_EQ(config.rc.reads, 7U);
  EXPECT_EQ(config.rc.ack_timeout, 10ms);
  EXPECT_EQ(config.worker.wait, WaitMode::poll);
  EXPECT_EQ(config.rc.send_depth, 64U);
  EXPECT_EQ(config.device.name, "mlx5_1");
}

// A number as people write numbers, for a count and for a size: what it is read as, or that it is refused.
struct Spelling {
  const char* text;
  std::uint32_t count;  // 0: refused
  std::uint32_t size;
};

TEST_F(ConfigText, OfNumbersIsReadAsItSaysOrRefused) {
  const std::vector<Spelling> spellings = {
      {"128", 128, 128}, {"1k", 0, 1024},      {"1K", 0, 1024}, {"1KiB", 0, 1024},   {"1kb", 0, 0},
      {"0x80", 128, 0},  {"0X80", 128, 0},     {"-1", 0, 0},    {"+128", 0, 0},      {"", 0, 0},
      {" ", 0, 0},       {"4294967424", 0, 0}, {"1e2", 0, 0},   {"128.0", 0, 128},   {"99999999999999999999", 0, 0},
      {"12 8", 0, 0},    {"0.5KiB", 0, 512},   {"true", 0, 0},  {"128 # all", 0, 0}, {"unlimited", 0, 0},
  };
  const auto read = [&](const char* variable, const char* text, auto value_of) -> std::uint32_t {
    try {
      return value_of(load_with({}, {{variable, text}}).config);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr(variable), HasSubstr(std::string("'") + text + "'"), HasSubstr(" to ")));
      return 0;
    }
  };
  for (const Spelling& spelling : spellings) {
    EXPECT_EQ(read("VERBATIM_RC_SEND_DEPTH", spelling.text, [](const Config& c) { return c.rc.send_depth; }),
              spelling.count)
        << spelling.text;
    EXPECT_EQ(read("VERBATIM_EAGER_MAX_BYTES", spelling.text, [](const Config& c) { return c.eager.max_bytes; }),
              spelling.size)
        << spelling.text;
  }
}

struct Refusal {
  const char* toml;
  std::vector<std::string> says;
};

TEST_F(ConfigText, ThatIsWrongIsRefusedWithLineNameValueAndRange) {
  const std::vector<Refusal> refusals = {
      {"[rc]\nreceive_depth = 1\n", {"user.toml:2", "rc.receive_depth", "'1'", "2 to 32768"}},
      {"[rc]\nretry_count = 8\n", {":2", "rc.retry_count", "'8'", "0 to 7"}},
      {"[rc]\nretry_count = 257\n", {"'257'", "0 to 7"}},
      {"[rc]\nreceive_depth = 4294967424\n", {"'4294967424'", "2 to 32768"}},
      {"[rc]\nreceive_depth = -1\n", {"'-1'"}},
      {"[rc]\nreceive_depth = '1k'\n", {"'1k'", "without a unit"}},
      {"[rc]\nreceive_depth = ''\n", {"''", "2 to 32768"}},
      {"[rc]\nreceive_depth = 1.5\n", {"'1.5'"}},
      {"[rc]\nreceive_depth = [1]\n", {":2", "one value"}},
      {"[rc]\nreceive_depth = \n", {":2"}},
      {"[rc]\nreceive_depth = 64\n\nreceive_depth = 65\n", {":4", "receive_depth"}},
      {"[rc]\nreceive_depth = 64\n[rc]\n", {":3", "rc"}},
      {"[[rc]]\nreceive_depth = 64\n", {":1", "rc", "[rc]"}},
      {"rc = 5\n", {":1", "rc", "[rc]"}},
      {"[rc]\nrnr_timer = '0ns'\n", {":2", "rc.rnr_timer", "'0ns'", "10us to 655360us"}},
      {"[rc]\nrnr_timer = '656ms'\n", {"'656ms'", "655360us"}},
      {"[rc]\nrnr_timer = 12\n", {"'12'", "us"}},
      {"[rc]\nack_timeout = '-1s'\n", {"'-1s'"}},
      {"[eager]\nmax_bytes = 63\n", {"eager.max_bytes", "'63'", "64 to 1MiB"}},
      {"[eager]\nmax_bytes = '8QiB'\n", {"'8QiB'", "KiB"}},
      {"[device]\ngid_index = -1\n", {"'-1'", "auto, 0 to 255"}},
      {"[device]\ngid_index = 256\n", {"'256'", "0 to 255"}},
      {"[device]\nservice_level = 16\n", {"'16'", "0 to 15"}},
      {"[device]\nhop_limit = 1\n", {"'1'", "2 to 255"}},
      {"[device]\nflow_label = 0x100000\n", {"'1048576'", "0x0 to 0xfffff"}},
      {"[device]\npkey = 65536\n", {"'65536'", "0x1 to 0xffff"}},
      {"[device]\nname = ''\n", {"device.name", "1 to 80 characters"}},
      {"[worker]\nwait = 'Poll'\n", {"worker.wait", "'Poll'", "poll, event, adaptive"}},
      {"[write_queue]\nenabled = true\n", {"'true'", "auto, on, off"}},
      {"profile = 1\n", {":1"}},
  };
  for (const Refusal& wrong : refusals) {
    const bool profile = std::string(wrong.toml).starts_with("profile");
    const std::string sentence =
        refusal([&] { return load_text(wrong.toml); }, profile ? ErrorCode::not_found : ErrorCode::invalid_argument);
    for (const std::string& part : wrong.says) EXPECT_THAT(sentence, HasSubstr(part)) << wrong.toml;
  }
}

TEST_F(ConfigText, OfAnOverrideIsRefusedLikeAnyOther) {
  const auto refused = [&](const std::string& text) {
    ConfigSources sources;
    sources.overrides = {text};
    return refusal([&] { return load_with(sources); });
  };
  EXPECT_THAT(refused("rc.receive_depth"), AllOf(HasSubstr("'rc.receive_depth'"), HasSubstr("table.name=value")));
  EXPECT_THAT(refused("rc.receive_depth="), AllOf(HasSubstr("rc.receive_depth"), HasSubstr("''")));
  EXPECT_THAT(refused("rc.receive_depth=1"), HasSubstr("2 to 32768"));
  EXPECT_THAT(refused("rc.recieve_depth=64"), AllOf(HasSubstr("'rc.recieve_depth'"), HasSubstr("'rc.receive_depth'")));
}

// -- names nobody knows ----------------------------------------------------------------------------------------------

constexpr const char* misspelt =
    "profil = 'latency'\n[rc]\nrecieve_depth = 64\n[rc.more]\nx = 1\n[worke]\nspin = '1us'\n[eager]\nreceive_depth = "
    "5\n";

TEST_F(ConfigName, ThatNobodyKnowsIsWarnedOfOnceWithItsPlaceAndTheNearest) {
  const LoadedConfig loaded =
      load_text(misspelt, {{"VERBATIM_RC_SEND_DEPHT", "64"}, {"VERBATIM_PROFIL", "latency"}, {"VERBATIMLY", "x"}});
  EXPECT_THAT(warnings,
              UnorderedElementsAre(
                  AllOf(HasSubstr("user.toml:1:"), HasSubstr("'profil'"), HasSubstr("'profile'")),
                  AllOf(HasSubstr("user.toml:3:"), HasSubstr("'rc.recieve_depth'"), HasSubstr("'rc.receive_depth'")),
                  AllOf(HasSubstr("user.toml:4:"), HasSubstr("'rc.more'")),
                  AllOf(HasSubstr("user.toml:6:"), HasSubstr("'worke'"), HasSubstr("'worker'")),
                  AllOf(HasSubstr("user.toml:9:"), HasSubstr("'eager.receive_depth'"), HasSubstr("'rc.receive_depth'")),
                  AllOf(HasSubstr("environment:"), HasSubstr("'VERBATIM_RC_SEND_DEPHT'"),
                        HasSubstr("'VERBATIM_RC_SEND_DEPTH'")),
                  AllOf(HasSubstr("'VERBATIM_PROFIL'"), HasSubstr("'VERBATIM_PROFILE'"))));
  for (const Origin& origin : loaded.origins) EXPECT_EQ(origin.from, ConfigOrigin::built_in);
}

TEST_F(ConfigName, ThatNobodyKnowsIsAnErrorInStrictMode) {
  ConfigSources sources;
  sources.strict = true;
  sources.file = write("user.toml", "[rc]\nrecieve_depth = 64\n");
  EXPECT_THAT(refusal([&] { return load_with(sources); }),
              AllOf(HasSubstr("user.toml:2"), HasSubstr("'rc.receive_depth'")));
  sources.file = write("user.toml", "[rc]\nreceive_depth = 64\n");
  EXPECT_EQ(load_with(sources).config.rc.receive_depth, 64U);
  EXPECT_THAT(refusal([&] { return load_with(sources, {{"VERBATIM_RC_READ", "8"}}); }), HasSubstr("VERBATIM_RC_READS"));
}

TEST_F(ConfigName, OfSomebodyElseIsLeftAlone) {
  ConfigSources sources;
  sources.strict = true;
  sources.file =
      write("user.toml", "[soft]\nname = 'soft1'\n[soft.limits]\nmax_qp = 8\n[[soft.ports]]\nstate = 'down'\n");
  (void)load_with(sources, {{"VERBATIM_LOG", "info"},
                            {"VERBATIM_SOFT_MAX_QP", "8"},
                            {"VERBATIM_SOFT_CONFIG", "soft.toml"},
                            {"VERBATIM_TEST_DEVICE", "rxe0"},
                            {"VERBATIM_PROFILE", ""},
                            {"VERBATIM_CONFIG", ""}});
  EXPECT_THAT(warnings, IsEmpty());
}

}  // namespace
}  // namespace verbatim::config
