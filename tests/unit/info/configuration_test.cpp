#include "verbatim-info/configuration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace verbatim::info {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Of an environment alone: no file of this host is read.
Configuration read(config::Environment environment, ConfigSources sources = {}) {
  environment.emplace(config::system_config_variable, "/dev/null");
  return read_configuration(sources, environment);
}

TEST(ConfigurationText, HasValueOriginDefaultRangeAndReason) {
  const auto text = to_text(read({{"VERBATIM_RC_RNR_TIMER", "1280us"}, {"VERBATIM_PROFILE", "throughput"}}));
  EXPECT_TRUE(text.starts_with("Profile: throughput\n\ndevice.name = \"auto\"\n    from: built in; default: \"auto\";"))
      << text;
  EXPECT_THAT(text, HasSubstr("\nrc.rnr_timer = \"1280us\"\n    from: environment, VERBATIM_RC_RNR_TIMER; default: "
                              "\"640us\"; allowed: 10us to 655360us\n    How long a sender waits"));
  EXPECT_THAT(text, HasSubstr("\nrc.receive_depth = 512\n    from: profile, throughput.toml:5; default: 128;"));
}

TEST(ConfigurationText, WarnsBeforeTheKnobs) {
  const auto text = to_text(read({{"VERBATIM_RC_READ", "3"}, {"VERBATIM_RC_RNR_RETRY_COUNT", "7"}}));
  EXPECT_TRUE(text.starts_with("Profile: none\nWarning: environment: nobody knows 'VERBATIM_RC_READ'")) << text;
  EXPECT_THAT(text, HasSubstr("\nWarning: rc.rnr_retry_count is 7, which is for ever"));
}

TEST(ConfigurationJson, HasNumbersInBytesAndNanoseconds) {
  const auto json = nlohmann::json::parse(to_json(read({{"VERBATIM_RC_RNR_TIMER", "1280us"},
                                                        {"VERBATIM_MEMORY_REGISTRATION_CACHE_BYTES", "unlimited"},
                                                        {"VERBATIM_DEVICE_GID_INDEX", "3"}})));
  EXPECT_TRUE(json["profile"].is_null());
  EXPECT_TRUE(json["refusal"].is_null());
  EXPECT_THAT(json["warnings"], IsEmpty());
  const auto& timer = json["config"]["rc.rnr_timer"];
  EXPECT_EQ(timer["value"], 1280000);
  EXPECT_EQ(timer["default"], 640000);
  EXPECT_EQ(timer["unit"], "ns");
  EXPECT_EQ(timer["origin"], "environment");
  EXPECT_EQ(timer["place"], "VERBATIM_RC_RNR_TIMER");
  EXPECT_EQ(timer["allowed"], "10us to 655360us");
  EXPECT_THAT(timer["reason"].get<std::string>(), HasSubstr("no receive posted"));
  EXPECT_EQ(json["config"]["eager.max_bytes"]["value"], 8192);
  EXPECT_EQ(json["config"]["eager.max_bytes"]["unit"], "bytes");
  EXPECT_TRUE(json["config"]["eager.max_bytes"]["place"].is_null());
  EXPECT_TRUE(json["config"]["memory.registration_cache_bytes"]["value"].is_null());
  EXPECT_EQ(json["config"]["device.gid_index"]["value"], 3);
  EXPECT_EQ(json["config"]["device.gid_index"]["default"], "auto");
  EXPECT_EQ(json["config"]["worker.wait"]["value"], "adaptive");
}

TEST(ConfigurationJson, SaysWhyValuesDoNotFit) {
  ConfigSources sources;
  sources.overrides = {"rc.receive_depth=4"};
  const auto json = nlohmann::json::parse(to_json(read({}, sources)));
  EXPECT_THAT(json["refusal"].get<std::string>(), HasSubstr("rc.repost_batch is 16"));
  EXPECT_EQ(json["config"]["rc.receive_depth"]["value"], 4);
}

}  // namespace
}  // namespace verbatim::info
