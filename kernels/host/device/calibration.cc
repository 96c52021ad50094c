// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "kernels/costs/trial_problem.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

// Shorter runs are repeated more often.
constexpr std::array<int64_t, 5> kOrders = {4, 8, 16, 32, kLargestCalibrated};
constexpr std::array<int, kOrders.size()> kTurns = {15, 9, 5, 3, 3};

using Seconds = std::array<double, kOrders.size()>;  // by index into kOrders
using Measured = std::map<DType, Seconds>;           // by element type

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
    const auto found = measured_.find(dtype);
    if (found == measured_.end()) return inner_->PredictSeconds(dtype, n);
    const Seconds& seconds = found->second;
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

bool IsChosenByAuto(const LuAlgorithm& algorithm) {
  return algorithm.traits().pivoting != PivotRule::kNone;
}

absl::StatusOr<std::vector<double>> TimeInTurns(ExecutionContext& context, TrialProblem& problem,
                                                int turns,
                                                const std::vector<const LuAlgorithm*>& methods) {
  std::vector<std::vector<double>> seconds(methods.size());
  for (int turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < methods.size(); ++i) {
      CROUT_ASSIGN_OR_RETURN(seconds[i].emplace_back(), problem.TimeFactor(context, *methods[i]));
    }
  }
  std::vector<double> medians(methods.size());
  std::transform(seconds.begin(), seconds.end(), medians.begin(), Median);
  return medians;
}

using MeasuredMethods = std::map<const LuAlgorithm*, Measured>;

// Times each method of `all` that supports `dtype`.
absl::Status Measure(ExecutionContext& context, DType dtype,
                     const std::vector<const LuAlgorithm*>& all, MeasuredMethods& measured) {
  std::vector<const LuAlgorithm*> methods;
  std::copy_if(all.begin(), all.end(), std::back_inserter(methods),
               [dtype](const LuAlgorithm* method) { return method->SupportsDense(dtype); });
  for (size_t o = 0; o < kOrders.size(); ++o) {
    CROUT_ASSIGN_OR_RETURN(TrialProblem problem,
                           TrialProblem::Create(context.device(), dtype, kOrders[o], methods));
    CROUT_ASSIGN_OR_RETURN(const std::vector<double> medians,
                           TimeInTurns(context, problem, kTurns[o], methods));
    for (size_t i = 0; i < methods.size(); ++i) measured[methods[i]][dtype][o] = medians[i];
  }
  return absl::OkStatus();
}

}  // namespace

void Calibrate(ExecutionContext& context, std::vector<std::unique_ptr<LuAlgorithm>>& algorithms) {
  std::vector<const LuAlgorithm*> methods;
  for (const auto& algorithm : algorithms) {
    if (IsChosenByAuto(*algorithm)) methods.push_back(algorithm.get());
  }
  MeasuredMethods measured;
  for (const DType dtype : kDTypes) {
    if (!Measure(context, dtype, methods, measured).ok()) return;
  }
  for (std::unique_ptr<LuAlgorithm>& algorithm : algorithms) {
    const auto found = measured.find(algorithm.get());
    if (found == measured.end()) continue;
    algorithm = std::make_unique<CalibratedAlgorithm>(std::move(algorithm), found->second);
  }
}

}  // namespace crout::host
