// Configuration files and an environment of a test's own; nothing of this host is read.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/config/knobs.hpp"
#include "base/config/load.hpp"
#include "base/error.hpp"

namespace verbatim::config {

class Files : public ::testing::Test {
 protected:
  Files() { std::filesystem::create_directories(folder); }
  ~Files() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder + "/" + name, std::ios::binary) << text;
    return folder + "/" + name;
  }

  // With an empty file of the system unless `environment` names another.
  LoadedConfig load_with(ConfigSources sources, Environment environment = {}) {
    environment.emplace(system_config_variable, write("nothing.toml", ""));
    warnings.clear();
    return load(sources, environment, [&](const std::string& sentence) { warnings.push_back(sentence); });
  }
  // The user's file has this text.
  LoadedConfig load_text(const std::string& toml, Environment environment = {}) {
    environment.emplace(config_variable, write("user.toml", toml));
    return load_with({}, std::move(environment));
  }

  // What `call` throws, or "not refused".
  template <typename Call>
  static std::string refusal(Call call, ErrorCode code = ErrorCode::invalid_argument) {
    try {
      (void)call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "not refused";
  }

  static Origin origin_of(const LoadedConfig& loaded, std::string_view table, std::string_view name) {
    return loaded.origins.at(static_cast<std::size_t>(find_knob(table, name) - knobs().data()));
  }

  const std::string folder = ::testing::TempDir() + "verbatim-config-" + std::to_string(::getpid());
  std::vector<std::string> warnings;
};

}  // namespace verbatim::config
