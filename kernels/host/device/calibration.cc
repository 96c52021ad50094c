#include "kernels/host/device/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/costs/trial_problem.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

// What is short is timed more often.
constexpr std::array<int64_t, 5> kOrders = {4, 8, 16, 32, kLargestCalibrated};
constexpr std::array<int, kOrders.size()> kTurns = {15, 9, 5, 3, 3};

using Seconds = std::array<double, kOrders.size()>;  // by order
using Measured = std::array<Seconds, 2>;             // by type

double LogRatio(int64_t a, int64_t b) {
  return std::log(static_cast<double>(a) / static_cast<double>(b));
}

class CalibratedAlgorithm final : public LuAlgorithm {
 public:
  CalibratedAlgorithm(std::unique_ptr<LuAlgorithm> inner, const Measured& measured)
      : inner_(std::move(inner)), measured_(measured) {}

  const MethodTraits& traits() const override { return inner_->traits(); }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters& parameters) const override {
    return inner_->WorkspaceBytes(dtype, n, parameters);
  }
  absl::StatusOr<size_t> ReportBytes(DType dtype, int64_t n,
                                     const LuParameters& parameters) const override {
    return inner_->ReportBytes(dtype, n, parameters);
  }
  double PredictSeconds(DType dtype, int64_t n) const override {
    const Seconds& seconds = measured_[static_cast<size_t>(dtype)];
    if (n <= kOrders.front()) return seconds.front();
    if (n >= kOrders.back()) {
      const double wrong_by = seconds.back() / inner_->PredictSeconds(dtype, kOrders.back());
      const double share = static_cast<double>(kOrders.back()) / static_cast<double>(n);
      return inner_->PredictSeconds(dtype, n) * std::pow(wrong_by, share);
    }
    const size_t above = std::upper_bound(kOrders.begin(), kOrders.end(), n) - kOrders.begin();
    const double share =
        LogRatio(n, kOrders[above - 1]) / LogRatio(kOrders[above], kOrders[above - 1]);
    return seconds[above - 1] * std::pow(seconds[above] / seconds[above - 1], share);
  }
  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters& parameters,
                      StopRequested stop) const override {
    return inner_->Factor(context, a, ipiv, workspace, parameters, stop);
  }
  absl::Status Finish(ExecutionContext& context, std::span<std::byte> workspace,
                      IterationReport* report) const override {
    return inner_->Finish(context, workspace, report);
  }

 private:
  const std::unique_ptr<LuAlgorithm> inner_;
  const Measured measured_;
};

// In every type, so that one run of the trials serves all.
bool IsChosenByAuto(const LuAlgorithm& algorithm) {
  return algorithm.traits().pivoting != PivotRule::kNone && algorithm.TakesDense(DType::kFloat32) &&
         algorithm.TakesDense(DType::kFloat64);
}

absl::Status TimeInTurns(ExecutionContext& context, TrialProblem& problem, int turns,
                         const std::vector<const LuAlgorithm*>& methods,
                         std::vector<double>& medians) {
  std::vector<std::vector<double>> seconds(methods.size());
  for (int turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < methods.size(); ++i) {
      CROUT_ASSIGN_OR_RETURN(seconds[i].emplace_back(), problem.TimeFactor(context, *methods[i]));
    }
  }
  for (size_t i = 0; i < methods.size(); ++i) medians[i] = Median(seconds[i]);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Measured>> Measure(ExecutionContext& context,
                                              const std::vector<const LuAlgorithm*>& methods) {
  std::vector<Measured> measured(methods.size());
  std::vector<double> medians(methods.size());
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (size_t o = 0; o < kOrders.size(); ++o) {
      CROUT_ASSIGN_OR_RETURN(TrialProblem problem,
                             TrialProblem::Create(context.device(), dtype, kOrders[o], methods));
      CROUT_RETURN_IF_ERROR(TimeInTurns(context, problem, kTurns[o], methods, medians));
      for (size_t i = 0; i < methods.size(); ++i) {
        measured[i][static_cast<size_t>(dtype)][o] = medians[i];
      }
    }
  }
  return measured;
}

}  // namespace

void Calibrate(ExecutionContext& context, std::vector<std::unique_ptr<LuAlgorithm>>& algorithms) {
  std::vector<std::unique_ptr<LuAlgorithm>*> slots;
  std::vector<const LuAlgorithm*> methods;
  for (std::unique_ptr<LuAlgorithm>& algorithm : algorithms) {
    if (!IsChosenByAuto(*algorithm)) continue;
    slots.push_back(&algorithm);
    methods.push_back(algorithm.get());
  }
  const absl::StatusOr<std::vector<Measured>> measured = Measure(context, methods);
  if (!measured.ok()) return;
  for (size_t i = 0; i < slots.size(); ++i) {
    *slots[i] = std::make_unique<CalibratedAlgorithm>(std::move(*slots[i]), (*measured)[i]);
  }
}

}  // namespace crout::host
