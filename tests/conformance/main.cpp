// Runs the suite and says at the end how many cases passed, failed and were skipped, and why those were.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/fabric.hpp"

namespace {

// The exit status by which CTest knows a program that could not run here.
constexpr int exit_unavailable = 77;

class Summary final : public testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const testing::TestInfo& test) override {
    const testing::TestResult& result = *test.result();
    if (!result.Skipped()) return;
    for (int i = 0; i < result.total_part_count(); ++i) {
      if (!result.GetTestPartResult(i).skipped()) continue;
      reasons_.push_back(
          fmt::format("{}.{}: {}", test.test_suite_name(), test.name(), result.GetTestPartResult(i).message()));
    }
  }

  void OnTestProgramEnd(const testing::UnitTest& program) override {
    for (const std::string& reason : reasons_) fmt::print("skipped {}\n", reason);
    fmt::print("{} passed, {} failed, {} skipped\n", program.successful_test_count(), program.failed_test_count(),
               program.skipped_test_count());
    std::fflush(stdout);
  }

 private:
  std::vector<std::string> reasons_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!testing::GTEST_FLAG(list_tests)) {
    if (const auto reason = verbatim::conformance::why_no_fabric()) {
      fmt::print("unavailable: {}\n", *reason);
      return exit_unavailable;
    }
  }
  testing::UnitTest::GetInstance()->listeners().Append(new Summary);  // GoogleTest owns it
  return RUN_ALL_TESTS();
}
