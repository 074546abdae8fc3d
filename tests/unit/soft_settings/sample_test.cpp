// conf/soft.toml shows the table of knobs, and this test holds it to that.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "device/soft/settings.hpp"
#include "device/soft/settings/rows.hpp"

namespace verbatim::soft {
namespace {

const std::string sample_path = VERBATIM_SAMPLE_SETTINGS;

TEST(SampleSettings, ShowsEveryKnob) {
  if (std::getenv("VERBATIM_REWRITE_DOCS") != nullptr) {
    std::ofstream(sample_path) << sample_settings();
    return;
  }
  std::ifstream file(sample_path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, sample_settings()) << "VERBATIM_REWRITE_DOCS=1 writes it anew";
}

TEST(SampleSettings, ReadAsTheyStandAreTheDefaults) {
  const DeviceConfig read = read_settings({{"VERBATIM_SOFT_CONFIG", sample_path}},
                                          [](const std::string& sentence) { ADD_FAILURE() << sentence; });
  const DeviceConfig defaults;
  for (const DeviceRow& row : device_rows()) EXPECT_EQ(show(read, row), show(defaults, row)) << row.name;
  ASSERT_EQ(read.ports.size(), defaults.ports.size());
  for (const PortRow& row : port_rows()) EXPECT_EQ(show(read.ports[0], row), show(defaults.ports[0], row)) << row.name;
  EXPECT_TRUE(read.ports[0].gids.empty());
  EXPECT_EQ(read.ports[0].pkeys, defaults.ports[0].pkeys);
  EXPECT_TRUE(read.faults.packets.empty());
}

}  // namespace
}  // namespace verbatim::soft
