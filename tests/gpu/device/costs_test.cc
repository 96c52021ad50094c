// SPDX-License-Identifier: Apache-2.0

// Tests measured costs of this GPU: the time of the measurement, the stored file, and predictions
// of the times of jobs.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/algorithm_registry.h"
#include "kernels/costs/trial_problem.h"
#include "kernels/jobs/factorize_mixed.h"
#include "tests/gpu/harness/gpu_testing.h"

namespace crout::costs_test {
namespace {

using ::testing::HasSubstr;

class CostsTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    directory_ =
        std::filesystem::temp_directory_path() / ("crout_costs_" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Returns the contents of the only file in the directory.
  std::string Kept() const {
    const std::filesystem::directory_iterator only(directory_);
    std::ifstream file(only->path());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Returns a device that stores costs in `directory`. Creates its first context, which measures
  // them.
  std::unique_ptr<Device> Make(const std::string& directory) {
    cuda::Options options;
    options.calibrate = true;
    options.state_directory = directory;
    options.log = [this](const std::string& report) { report_ = report; };
    auto device = cuda::MakeDevice(0, options);
    EXPECT_TRUE(device.ok()) << device.status();
    Bench bench(**device);
    return *std::move(device);
  }

  std::filesystem::path directory_;
  std::string report_;
};

// At large orders, a lower precision with corrections is much faster, unless the matrix is too
// ill-conditioned.
TEST_F(CostsTest, ChoosesLowerPrecisionIfItIsFaster) {
  const auto device = Make(directory_);
  const auto chosen = [&](int64_t n, double rcond) {
    FactorizeOptions wide;
    wide.algorithm = *FindAlgorithm(*device, "crout_lu", DType::kFloat64, n);
    FactorizeOptions low = wide;
    low.factor_dtype = DType::kFloat32;
    return ChoosePrecision(*device, low, wide, n, rcond);
  };
  EXPECT_EQ(chosen(4096, 0), FactorPrecision::kFactorType);
  for (const int64_t n : {16384, 32768}) {
    EXPECT_EQ(chosen(n, 0), FactorPrecision::kSingle) << n;
    EXPECT_EQ(chosen(n, 1e-4), FactorPrecision::kSingle) << n;
    EXPECT_EQ(chosen(n, 1e-2), FactorPrecision::kTf32) << n;
    EXPECT_EQ(chosen(n, 1e-8), FactorPrecision::kFactorType) << n;
  }
}

TEST_F(CostsTest, MeasuresOnceInBoundedTime) {
  (void)Make(directory_);
  EXPECT_THAT(report_, HasSubstr("measured in"));
  EXPECT_THAT(report_, HasSubstr("stored in"));
  std::printf("first start: %s\n", report_.c_str());
  const double seconds = std::stod(report_.substr(report_.find(" in ") + 4));
  EXPECT_LT(seconds, 3);
  (void)Make(directory_);
  EXPECT_THAT(report_, HasSubstr("read from"));
  (void)Make("");
  EXPECT_THAT(report_, HasSubstr("measured in"));
}

TEST_F(CostsTest, MeasuresEverySolver) {
  const std::unique_ptr<Device> device = Make(directory_);
  const std::string kept = Kept();
  for (const auto& solver : device->solvers()) {
    if (!solver->SupportsDense(DType::kFloat64)) continue;
    for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
      EXPECT_THAT(kept, HasSubstr("\n" + std::string(solver->name()) + " " +
                                  std::string(NameOf(dtype)) + " 256 "));
    }
  }
}

TEST_F(CostsTest, PredictsTimesOfMethods) {
  const std::unique_ptr<Device> device = Make("");
  Bench bench(*device);
  for (const DType dtype : kDTypes) {
    for (const int64_t n : {256, 700, 1024, 2048, 4096, 6000}) {
      for (const char* name : {"getrf", "crout_lu", "pcmpp", "block_lu"}) {
        const LuAlgorithm* algorithm = *FindAlgorithm(*device, name, dtype, n);
        auto problem = TrialProblem::Create(*device, dtype, n, {{algorithm}});
        ASSERT_TRUE(problem.ok()) << problem.status();
        std::vector<double> seconds;
        for (int turn = 0; turn < 3; ++turn) {
          seconds.push_back(problem->TimeFactor(bench.context(), *algorithm).value());
        }
        const double ratio = Median(seconds) / algorithm->PredictSeconds(dtype, n);
        EXPECT_GT(ratio, 0.4) << name << " n=" << n << " " << NameOf(dtype);
        EXPECT_LT(ratio, 2.5) << name << " n=" << n << " " << NameOf(dtype);
        std::printf("%s %s n=%d: measured / predicted %.2f\n", name, NameOf(dtype).data(),
                    static_cast<int>(n), ratio);
      }
    }
  }
}

TEST_F(CostsTest, PredictsTimesOfSolvers) {
  const std::unique_ptr<Device> device = Make("");
  Bench bench(*device);
  for (const DType dtype : kDTypes) {
    const LuAlgorithm* algorithm = *FindAlgorithm(*device, "getrf", dtype, 1024);
    for (const int64_t n : {256, 700, 1024, 4096}) {
      for (const auto& solver : device->solvers()) {
        if (!solver->SupportsDense(dtype)) continue;
        auto problem = TrialProblem::Create(*device, dtype, n, {{algorithm}}, {{solver.get()}});
        ASSERT_TRUE(problem.ok()) << problem.status();
        ASSERT_TRUE(problem->TimeFactor(bench.context(), *algorithm).ok());
        std::vector<double> seconds;
        for (int turn = 0; turn < 5; ++turn) {
          seconds.push_back(problem->TimeSolve(bench.context(), *solver).value());
        }
        // The minimum is compared, because other work on the machine often delays short solves.
        const double ratio =
            *std::ranges::min_element(seconds) / solver->PredictSeconds(dtype, n, 1);
        EXPECT_GT(ratio, 0.4) << solver->name() << " n=" << n << " " << NameOf(dtype);
        EXPECT_LT(ratio, 2.5) << solver->name() << " n=" << n << " " << NameOf(dtype);
        std::printf("%s %s n=%d: measured / predicted %.2f\n", std::string(solver->name()).c_str(),
                    NameOf(dtype).data(), static_cast<int>(n), ratio);
      }
    }
  }
}

TEST_F(CostsTest, AutoChoosesTheFastestMeasuredMethod) {
  const std::unique_ptr<Device> device = Make("");
  for (const DType dtype : kDTypes) {
    for (const int64_t n : {256, 1024, 4096}) {
      const LuAlgorithm* chosen = *FindAlgorithm(*device, "auto", dtype, n);
      for (const char* name : {"getrf", "crout_lu", "pcmpp"}) {
        const LuAlgorithm* other = *FindAlgorithm(*device, name, dtype, n);
        EXPECT_LE(chosen->PredictSeconds(dtype, n), other->PredictSeconds(dtype, n)) << name;
      }
    }
  }
}

// Complex types use the ratios of real types. `auto` must still choose the faster method.
TEST_F(CostsTest, AutoIsNotSlowerThanTheVendorInComplexTypes) {
  const std::unique_ptr<Device> device = Make("");
  Bench bench(*device);
  for (const DType dtype : {DType::kComplex128, DType::kComplex64}) {
    for (const int64_t n : {256, 512, 1024, 2048, 4096, 8192}) {
      const LuAlgorithm* chosen = *FindAlgorithm(*device, "auto", dtype, n);
      const LuAlgorithm* vendor = *FindAlgorithm(*device, "getrf", dtype, n);
      if (chosen == vendor) continue;
      auto problem = TrialProblem::Create(*device, dtype, n, {{chosen, vendor}});
      ASSERT_TRUE(problem.ok()) << problem.status();
      std::vector<double> ratios;  // alternating runs, so that clock changes affect both
      for (int turn = 0; turn < 5; ++turn) {
        const double seconds = problem->TimeFactor(bench.context(), *chosen).value();
        ratios.push_back(seconds / problem->TimeFactor(bench.context(), *vendor).value());
      }
      EXPECT_LE(Median(ratios), 1.05)
          << chosen->traits().name << " n=" << n << " " << NameOf(dtype);
    }
  }
}

}  // namespace
}  // namespace crout::costs_test
