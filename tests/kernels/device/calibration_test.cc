// SPDX-License-Identifier: Apache-2.0

// Tests the measurement of methods on small matrices, with methods whose times are known.
#include "kernels/host/device/calibration.h"

#include <cmath>
#include <functional>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/host/device/host_device.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/failpoints.h"

namespace crout::calibration_test {
namespace {

// Only advances the clock by the given time, which is far longer than the real time of a call.
// Predicts a millisecond per row.
class SimulatedAlgorithm final : public LuAlgorithm {
 public:
  using TimeOf = std::function<absl::Duration(DType dtype, int64_t n, int call)>;

  SimulatedAlgorithm(testing::Failpoints& clock, PivotRule pivoting, EnumSet<DType> types,
                     TimeOf time, absl::Status status)
      : clock_(clock), time_(std::move(time)), status_(std::move(status)) {
    traits_.name = "pretending";
    traits_.pivoting = pivoting;
    traits_.types = types;
  }

  const MethodTraits& traits() const override { return traits_; }
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, const LuParameters&) const override {
    return 0;
  }
  double PredictSeconds(DType, int64_t n) const override { return 1e-3 * static_cast<double>(n); }
  absl::Status Factor(ExecutionContext&, const AnyMatrix& a, int64_t*, std::span<std::byte>,
                      const LuParameters&, StopRequested) const override {
    clock_.Advance(time_(a.dtype, a.rows, calls_++));
    return status_;
  }

 private:
  MethodTraits traits_;
  testing::Failpoints& clock_;
  const TimeOf time_;
  const absl::Status status_;
  mutable int calls_ = 0;
};

SimulatedAlgorithm::TimeOf Always(absl::Duration time) {
  return [time](DType, int64_t, int) { return time; };
}

class CalibrationTest : public ::testing::Test {
 protected:
  void Add(SimulatedAlgorithm::TimeOf time, PivotRule pivoting = PivotRule::kPartial,
           absl::Status status = absl::OkStatus()) {
    algorithms_.push_back(std::make_unique<SimulatedAlgorithm>(clock_, pivoting, types_,
                                                               std::move(time), std::move(status)));
  }
  void Run() {
    auto context = device_->CreateContext();
    ASSERT_OK(context);
    host::Calibrate(**context, algorithms_);
  }
  double Predict(int method, int64_t n, DType dtype = DType::kFloat64) const {
    return algorithms_[method]->PredictSeconds(dtype, n);
  }

  EnumSet<DType> types_ = kAllTypes;  // types of methods added later
  testing::Failpoints clock_;
  const std::unique_ptr<Device> device_ = host::MakeDevice({.threads = 1});
  std::vector<std::unique_ptr<LuAlgorithm>> algorithms_;
};

TEST_F(CalibrationTest, PredictsMeasuredTimes) {
  Add(Always(absl::Seconds(30)));
  Add([](DType dtype, int64_t n, int) {
    return (dtype == DType::kFloat32 ? 1 : 2) * absl::Seconds(n);
  });
  Run();
  for (const int64_t n : {0, 1, 4, 5, 8, 20, 32, 47, 48}) {
    EXPECT_GE(Predict(0, n), 30);
    EXPECT_LT(Predict(0, n), 40);
  }
  // At two seconds per row the times cross at n = 15 in float64, and at n = 30 in float32.
  EXPECT_LT(Predict(1, 10), Predict(0, 10));
  EXPECT_GT(Predict(1, 24), Predict(0, 24));
  EXPECT_LT(Predict(1, 24, DType::kFloat32), Predict(0, 24, DType::kFloat32));
  EXPECT_GT(Predict(1, 40, DType::kFloat32), Predict(0, 40, DType::kFloat32));
}

TEST_F(CalibrationTest, MeasuresEachTypeWithTheMethodsThatSupportIt) {
  Add([](DType dtype, int64_t, int) { return (1 + static_cast<int>(dtype)) * absl::Seconds(10); });
  types_ = {DType::kComplex64};
  Add(Always(absl::Seconds(7)));
  Run();
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128}) {
    EXPECT_NEAR(Predict(0, 16, dtype), 10 * (1 + static_cast<int>(dtype)), 1);
    const bool taken = dtype == DType::kComplex64;
    EXPECT_NEAR(Predict(1, 16, dtype), taken ? 7 : 16e-3, taken ? 1 : 0);
  }
}

TEST_F(CalibrationTest, FadesTheCorrectionBeyondTheLargestOrder) {
  Add(Always(absl::Seconds(30)));
  Run();
  const double own = 1e-3 * host::kLargestCalibrated;
  const double wrong_by = Predict(0, host::kLargestCalibrated) / own;
  EXPECT_GT(wrong_by, 100);
  EXPECT_NEAR(Predict(0, 2 * host::kLargestCalibrated) / (2 * own), std::sqrt(wrong_by), 1e-6);
  EXPECT_NEAR(Predict(0, 1000000) / 1e3, 1, 1e-3);
}

TEST_F(CalibrationTest, IgnoresDisturbedRuns) {
  Add([](DType, int64_t, int call) {
    return call % 3 == 0 ? absl::Seconds(500) : absl::Seconds(10);
  });
  Add(Always(absl::Seconds(100)));
  Run();
  EXPECT_LT(Predict(0, 16), Predict(1, 16));
}

TEST_F(CalibrationTest, DoesNotCorrectMethodsWithoutPivoting) {
  Add(Always(absl::Seconds(1)), PivotRule::kNone);
  Add(Always(absl::Seconds(1)));
  const LuAlgorithm* without = algorithms_[0].get();
  const LuAlgorithm* with = algorithms_[1].get();
  Run();
  EXPECT_EQ(algorithms_[0].get(), without);
  EXPECT_NE(algorithms_[1].get(), with);
  EXPECT_EQ(algorithms_[1]->traits().name, "pretending");
}

TEST_F(CalibrationTest, CorrectsNothingIfOneMethodFails) {
  Add(Always(absl::Seconds(1)));
  Add(Always(absl::Seconds(1)), PivotRule::kPartial, absl::InternalError("broken"));
  Run();
  for (const int method : {0, 1}) EXPECT_DOUBLE_EQ(Predict(method, 16), 16e-3);
}

}  // namespace
}  // namespace crout::calibration_test
