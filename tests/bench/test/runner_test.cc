// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/runner.h"
#include "tests/bench/harness/bench_result.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/host/device/host_device.h"
#include "tests/support/status_matchers.h"

namespace crout::bench::runner_test {
namespace {

using ::crout::testing::FailsWith;
using ::testing::HasSubstr;

// Has a directory for the files of a run, and removes it at the end.
class RunnerTest : public ::testing::Test {
 protected:
  RunnerTest() {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(directory_ / "deep");
    options_.matrices = directory_.string();
    options_.repetitions = 2;
    options_.algorithms = {"getrf", "cmpp", "icmpp"};
    options_.pattern_cells = 8;
  }
  ~RunnerTest() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& body) {
    std::ofstream(directory_ / name) << "%%MatrixMarket matrix " << body;
  }

  Json Run() {
    auto result = RunBenchmark(*device_, options_, [](const Json&) { return absl::OkStatus(); });
    EXPECT_OK(result);
    return result.ok() ? *std::move(result) : Json();
  }

  static std::vector<Json> CasesOf(const Json& result, const std::string& matrix,
                                   const std::string& algorithm) {
    std::vector<Json> some;
    for (const Json& c : result["cases"]) {
      if (c["matrix"] == matrix && c["algorithm"] == algorithm) some.push_back(c);
    }
    return some;
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  std::filesystem::path directory_;
  Options options_;
};

constexpr char kTwoByTwo[] = "coordinate real general\n2 2 3\n1 1 4\n1 2 1\n2 2 2\n";

TEST_F(RunnerTest, WritesAllFieldsOfACase) {
  options_.generate = {{"thesis", {64}}};
  options_.dtypes = {DType::kFloat64, DType::kFloat32};
  const Json result = Run();
  for (const char* key :
       {"benchmark", "device", "version", "commit", "date", "cores", "machine_cores"}) {
    EXPECT_TRUE(result.contains(key)) << key;
  }
  EXPECT_EQ(result["benchmark"], "crout");
  ASSERT_EQ(result["cases"].size(), 6u);  // three methods, two types
  for (const Json& c : result["cases"]) {
    EXPECT_EQ(c["matrix"], "thesis64");
    EXPECT_EQ(c["n"], 64);
    EXPECT_EQ(c["info"], 0);
    EXPECT_EQ(c["times_s"].size(), 2u);
    EXPECT_GT(c["median_s"], 0);
    EXPECT_LE(c["min_s"], c["median_s"]);
    EXPECT_LE(c["median_s"], c["max_s"]);
    EXPECT_LT(c["factor_ratio"], 30);
    EXPECT_LT(c["max_abs_diff"], c["dtype"] == "f64" ? 1e-8 : 10);
    EXPECT_GT(c["growth"], 0);
    const double eps = c["dtype"] == "f64" ? 1e-14 : 1e-5;
    EXPECT_LT(c["backward_error"], eps);
    EXPECT_LT(c["refined"]["backward_error"], eps);
    EXPECT_EQ(c.contains("iterations"), c["algorithm"] == "icmpp");
  }
}

TEST_F(RunnerTest, WritesSeparateCasesOfComplexTypes) {
  Write("a.mtx", kTwoByTwo);
  Write("z.mtx", "coordinate complex general\n2 2 3\n1 1 4 1\n1 2 1 0\n2 2 2 -1\n");
  options_.generate = {{"thesis", {64}}};
  options_.dtypes = {DType::kFloat64, DType::kComplex128, DType::kComplex64};
  options_.direct = true;
  const Json result = Run();
  for (const char* matrix : {"a", "z", "thesis64"}) {
    std::vector<std::string> types;
    for (const Json& c : CasesOf(result, matrix, "cmpp")) {
      types.push_back(c["dtype"]);
      EXPECT_LT(c["factor_ratio"], 30);
      EXPECT_LT(c["backward_error"], c["dtype"] == "c64" ? 1e-5 : 1e-14);
    }
    EXPECT_EQ(types.size(), matrix[0] == 'z' ? 2u : 3u) << matrix;
    EXPECT_EQ(CasesOf(result, matrix, "gauss_jordan").size(), 2 * types.size()) << matrix;
  }
  EXPECT_EQ(CasesOf(result, "z", "cmpp")[0]["nonzeros"], 3);
  ASSERT_EQ(result["skipped"].size(), 1u);
  EXPECT_THAT(result["skipped"][0]["reason"], HasSubstr("--dtype=c128"));
}

TEST_F(RunnerTest, ReportsSectionsOfIterativeMethods) {
  options_.algorithms = {"icmpp"};
  options_.generate = {{"thesis", {64}}};
  options_.section_sizes = {16};
  const Json result = Run();
  const Json& iterations = result["cases"][0]["iterations"];
  EXPECT_EQ(iterations["start"], "cold");
  const int64_t sections = iterations["sections"];
  ASSERT_EQ(iterations["sweeps"].size(), static_cast<size_t>(sections));
  ASSERT_EQ(iterations["pivots"].size(), static_cast<size_t>(sections));
  int64_t sweeps = 0;
  int64_t pivots = 0;
  for (const Json& row : iterations["sweeps"]) {
    EXPECT_EQ(row.size(), static_cast<size_t>(sections));
    for (const Json& value : row) sweeps += value.get<int64_t>();
  }
  for (const Json& value : iterations["pivots"]) pivots += value.get<int64_t>();
  EXPECT_EQ(iterations["total_sweeps"], sweeps);
  EXPECT_EQ(iterations["total_pivots"], pivots);
  EXPECT_EQ(iterations["first_sweeps"], iterations["sweeps"][0][0]);
  EXPECT_GT(pivots, 0);  // about half of the diagonal is zero
  ASSERT_EQ(result["patterns"].size(), 1u);
  EXPECT_EQ(result["patterns"][0]["a"]["rows"].size(), 8u);
  EXPECT_EQ(result["patterns"][0]["lu"]["rows"][7].get<std::string>().size(), 8u);
}

TEST_F(RunnerTest, OmitsMapsThatAreTooLargeForPictures) {
  options_.algorithms = {"icmpp"};
  options_.generate = {{"thesis", {64, 65}}};
  options_.section_sizes = {1};
  const Json result = Run();
  for (const Json& c : result["cases"]) {
    const Json& iterations = c["iterations"];
    EXPECT_EQ(iterations["sections"], c["n"]);
    EXPECT_GT(iterations["first_sweeps"], 0);
    for (const char* map : {"sweeps", "pivots", "bad_elements"}) {
      EXPECT_EQ(iterations.contains(map), c["n"] == 64) << map;
    }
  }
}

TEST_F(RunnerTest, StartsFromThePreviousStepOfASequence) {
  options_.algorithms = {"getrf", "icmpp"};
  options_.generate = {{"dominant", {48}}};
  options_.warm = {1e-6};
  options_.steps = 2;
  options_.tolerances = {1e-10};
  const Json result = Run();
  const std::vector<Json> cases = CasesOf(result, "dominant48", "icmpp");
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_FALSE(cases[0].contains("sequence"));
  EXPECT_EQ(cases[0]["iterations"]["start"], "cold");
  for (int step = 1; step <= 2; ++step) {
    EXPECT_EQ(cases[step]["sequence"], Json({{"delta", 1e-6}, {"step", step}}));
    EXPECT_EQ(cases[step]["iterations"]["start"], "warm");
    EXPECT_LT(cases[step]["iterations"]["total_sweeps"], cases[0]["iterations"]["total_sweeps"]);
    EXPECT_LT(cases[step]["refined"]["backward_error"], 1e-15);
  }
  EXPECT_EQ(CasesOf(result, "dominant48", "getrf").size(), 3u);
}

TEST_F(RunnerTest, FindsFilesAndReportsWhySomeAreSkipped) {
  Write("a.mtx", kTwoByTwo);
  Write("deep/b.mtx", kTwoByTwo);
  Write("deep/wide.mtx", "coordinate real general\n2 3 1\n1 1 4\n");
  Write("deep/broken.mtx", "coordinate real general\n2 2 2\n1 1 4\n");
  Write("big.mtx", "coordinate real general\n9 9 1\n1 1 4\n");
  Write("notes.txt", kTwoByTwo);
  options_.max_n = 8;
  options_.algorithms = {"getrf"};
  const Json result = Run();
  ASSERT_EQ(result["cases"].size(), 2u);
  EXPECT_EQ(result["cases"][0]["source"], "a.mtx");
  EXPECT_EQ(result["cases"][1]["source"], "deep/b.mtx");
  EXPECT_EQ(result["cases"][1]["matrix"], "b");
  EXPECT_EQ(result["cases"][1]["nonzeros"], 3);
  ASSERT_EQ(result["skipped"].size(), 3u);
  EXPECT_THAT(result["skipped"][0]["reason"], HasSubstr("beyond the limits"));
  EXPECT_EQ(result["skipped"][1]["matrix"], "broken");
  EXPECT_THAT(result["skipped"][2]["reason"], HasSubstr("2 x 3"));
  options_.match = "deep/@(b|c).*";
  EXPECT_EQ(Run()["cases"].size(), 1u);
}

TEST_F(RunnerTest, WritesTheResultAfterEachMatrix) {
  Write("a.mtx", kTwoByTwo);
  Write("broken.mtx", "coordinate real general\n2 2 2\n1 1 4\n");
  options_.generate = {{"random", {4}}};
  options_.algorithms = {"getrf"};
  std::vector<Json> kept;
  const auto keep = [&](const Json& so_far) {
    kept.push_back(so_far);
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const Json result, RunBenchmark(*device_, options_, keep));
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[2], result);
  const auto cases_and_skipped = [](const Json& so_far) {
    return std::pair(so_far["cases"].size(), so_far["skipped"].size());
  };
  EXPECT_EQ(cases_and_skipped(kept[0]), std::pair(size_t{1}, size_t{2}));
  EXPECT_EQ(
      kept[0]["skipped"][1],
      Json({{"matrix", "random4"}, {"source", "random"}, {"reason", "the run ended before it"}}));
  EXPECT_EQ(cases_and_skipped(kept[1]), std::pair(size_t{1}, size_t{2}));
  EXPECT_THAT(kept[1]["skipped"][0]["reason"], HasSubstr("entries"));
  EXPECT_EQ(cases_and_skipped(kept[2]), std::pair(size_t{2}, size_t{1}));

  const auto full = [](const Json&) { return absl::UnavailableError("no space left"); };
  EXPECT_THAT(RunBenchmark(*device_, options_, full),
              FailsWith(absl::StatusCode::kUnavailable, "no space left"));
}

TEST_F(RunnerTest, ReportsSingularMatricesAndRefusedCases) {
  Write("zero.mtx", "coordinate real general\n3 3 2\n1 1 1\n3 3 1\n");
  options_.algorithms = {"getrf", "icmpp", "nothing"};
  options_.section_sizes = {0};
  options_.pivotings = {PivotCriterion{PivotRule::kThreshold, 0, 1, 2.0}};  // out of range
  const Json result = Run();
  const Json& getrf = result["cases"][0];
  EXPECT_EQ(getrf["info"], 2);
  EXPECT_FALSE(getrf.contains("backward_error"));
  EXPECT_EQ(getrf["times_s"].size(), 2u);
  const Json& icmpp = result["cases"][1];
  EXPECT_THAT(icmpp["error"], HasSubstr("INVALID_ARGUMENT"));
  EXPECT_FALSE(icmpp.contains("times_s"));
  ASSERT_EQ(result["unavailable"].size(), 1u);
  EXPECT_EQ(result["unavailable"][0]["algorithm"], "nothing");
}

TEST_F(RunnerTest, OmitsAccuracyOfLargeMatricesWithAReason) {
  Write("a.mtx", kTwoByTwo);
  options_.algorithms = {"getrf"};
  options_.accuracy_limit = 1;
  const Json result = Run();
  EXPECT_FALSE(result["cases"][0].contains("factor_ratio"));
  EXPECT_THAT(result["cases"][0]["accuracy"], HasSubstr("--accuracy-limit"));
  EXPECT_TRUE(result["cases"][0].contains("backward_error"));
}

TEST_F(RunnerTest, ComparesDirectSolversWithAFactorizationAndASolve) {
  options_.generate = {{"random", {40}}};
  options_.algorithms = {"getrf"};
  options_.direct = true;
  const Json result = Run();
  EXPECT_EQ(CasesOf(result, "random40", "getrf+getrs").size(), 2u);
  const std::vector<Json> direct = CasesOf(result, "random40", "gauss_jordan");
  ASSERT_EQ(direct.size(), 2u);
  EXPECT_EQ(direct[0]["nrhs"], 1);
  EXPECT_EQ(direct[1]["nrhs"], 40);
  for (const Json& c : direct) {
    EXPECT_LT(c["backward_error"], 1e-13);
    EXPECT_EQ(c["times_s"].size(), 2u);
  }
}

TEST_F(RunnerTest, ComparesSolvers) {
  options_.generate = {{"thesis", {40}}};
  options_.algorithms = {"getrf"};
  options_.dtypes = {DType::kFloat64, DType::kComplex64};
  options_.solvers = true;
  const Json result = Run();
  for (const char* solver : {"ss", "is", "trsm", "getrs"}) {
    const std::vector<Json> cases = CasesOf(result, "thesis40", solver);
    ASSERT_EQ(cases.size(), 2u) << solver;
    for (const Json& c : cases) {
      EXPECT_EQ(c["factors"], std::string(solver) == "getrs" ? "getrf" : "cmpp");
      EXPECT_EQ(c["nrhs"], 10);
      EXPECT_LT(c["max_abs_diff"], c["dtype"] == "f64" ? 1e-8 : 1) << solver;
      EXPECT_EQ(c["times_s"].size(), 2u);
    }
  }
}

TEST_F(RunnerTest, RunsTheStepsOfASeriesFamily) {
  options_.generate = {{"mcf", {8}}, {"random", {8}}};
  options_.algorithms = {"icm"};
  options_.warm = {0};
  options_.steps = 2;
  const Json result = Run();
  const std::vector<Json> cases = CasesOf(result, "mcf8", "icm");
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0]["n"], 64);
  EXPECT_GT(cases[0]["condition"], 1);
  EXPECT_LT(cases[0]["condition"], 10);
  EXPECT_EQ(cases[2]["sequence"], Json({{"delta", 0.0}, {"step", 2}}));
  EXPECT_LT(cases[2]["factor_ratio"], 30);
  EXPECT_EQ(CasesOf(result, "random8", "icm").size(), 1u);  // the family is no series
}

TEST_F(RunnerTest, ComparesAutoWithTheFastestMethod) {
  options_.generate = {{"random", {40}}};
  options_.algorithms = {};
  const Json result = Run();
  ASSERT_EQ(result["auto"].size(), 1u);
  const Json& comparison = result["auto"][0];
  EXPECT_EQ(comparison["n"], 40);
  EXPECT_GE(comparison["chosen_over_best"], 1);
  EXPECT_LE(comparison["best_s"], comparison["chosen_s"]);
  EXPECT_EQ(CasesOf(result, "random40", comparison["best"]).size(), 1u);
}

TEST_F(RunnerTest, ReturnsErrorIfThereIsNothingToRun) {
  EXPECT_THAT(RunBenchmark(*device_, options_, [](const Json&) { return absl::OkStatus(); }),
              FailsWith(absl::StatusCode::kInvalidArgument, "no matrices"));
}

TEST_F(RunnerTest, FormatsALineForEveryCase) {
  Write("a.mtx", kTwoByTwo);
  const Json result = Run();
  const std::string text = FormatResult(result);
  EXPECT_EQ(Json::parse(text), result);
  EXPECT_THAT(text, HasSubstr("\"cases\": [\n {\"matrix\":\"a\""));
}

}  // namespace
}  // namespace crout::bench::runner_test
