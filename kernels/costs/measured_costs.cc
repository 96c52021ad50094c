// SPDX-License-Identifier: Apache-2.0

#include "kernels/costs/measured_costs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/device.h"
#include "kernels/util/small_file.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

constexpr int kTurns = 3;

constexpr DType kTypes[] = {DType::kFloat64, DType::kFloat32};

// Returns the methods marked `is_timed` that take all of kTypes.
template <class Method>
std::vector<const Method*> Timed(const std::vector<std::unique_ptr<Method>>& methods) {
  std::vector<const Method*> timed;
  for (const auto& method : methods) {
    const bool supports_all = std::all_of(std::begin(kTypes), std::end(kTypes), [&](DType dtype) {
      return method->SupportsDense(dtype);
    });
    if (method->traits().is_timed && supports_all) timed.push_back(method.get());
  }
  return timed;
}

// Seconds of the timed methods for one order and type, in the order of Timed().
struct Times {
  std::vector<double> algorithms;
  std::vector<double> solvers;
};

class Trials {
 public:
  Trials(ExecutionContext& context, Timer timer)
      : context_(context),
        algorithms_(Timed(context.device().algorithms())),
        solvers_(Timed(context.device().solvers())),
        timer_(timer) {}

  // Measures until the timer reaches `end`.
  absl::Status Measure(DType dtype, const std::vector<int64_t>& orders, double end,
                       CostRatios& ratios) {
    double last = 0;  // total seconds of the previous order
    int64_t last_order = 0;
    for (const int64_t n : orders) {
      const double start = timer_();
      const double growth =
          last_order == 0 ? 0
                          : std::pow(static_cast<double>(n) / static_cast<double>(last_order), 3);
      if (start + last * growth > end) break;
      CROUT_ASSIGN_OR_RETURN(const Times times, Time(dtype, n));
      for (size_t i = 0; i < algorithms_.size(); ++i) {
        ratios.Set(algorithms_[i]->name(), dtype, n,
                   times.algorithms[i] / algorithms_[i]->PredictSeconds(dtype, n));
      }
      for (size_t i = 0; i < solvers_.size(); ++i) {
        ratios.Set(solvers_[i]->name(), dtype, n,
                   times.solvers[i] / solvers_[i]->PredictSeconds(dtype, n, 1));
      }
      last = timer_() - start;
      last_order = n;
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Times> Time(DType dtype, int64_t n) {
    CROUT_ASSIGN_OR_RETURN(TrialProblem problem, TrialProblem::Create(context_.device(), dtype, n,
                                                                      algorithms_, solvers_));
    if (algorithms_.empty()) return absl::NotFoundError("the device has no algorithm to measure");
    std::vector<std::vector<double>> factor(algorithms_.size());
    std::vector<std::vector<double>> solve(solvers_.size());
    for (int turn = 0; turn < kTurns; ++turn) {
      for (size_t i = 0; i < algorithms_.size(); ++i) {
        CROUT_ASSIGN_OR_RETURN(factor[i].emplace_back(),
                               problem.TimeFactor(context_, *algorithms_[i], timer_));
        for (size_t s = 0; i == 0 && s < solvers_.size(); ++s) {
          CROUT_ASSIGN_OR_RETURN(solve[s].emplace_back(),
                                 problem.TimeSolve(context_, *solvers_[s], timer_));
        }
      }
    }
    Times times;
    for (auto& seconds : factor) times.algorithms.push_back(Median(std::move(seconds)));
    for (auto& seconds : solve) times.solvers.push_back(Median(std::move(seconds)));
    return times;
  }

  ExecutionContext& context_;
  const std::vector<const LuAlgorithm*> algorithms_;
  const std::vector<const TriangularSolver*> solvers_;
  const Timer timer_;
};

absl::StatusOr<CostRatios> Read(const std::string& path, std::string_view key) {
  CROUT_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, CostRatios::kMaxTextBytes));
  return CostRatios::Parse(text, key);
}

}  // namespace

absl::StatusOr<CostRatios> MeasureCosts(ExecutionContext& context, const CostTrials& trials,
                                        Timer timer) {
  CostRatios ratios;
  Trials methods(context, timer);
  const double start = timer();
  double share = 0;  // fraction of the total time at which this type ends
  for (const DType dtype : kTypes) {
    share += 1.0 / std::size(kTypes);
    CROUT_RETURN_IF_ERROR(
        methods.Measure(dtype, trials.orders, start + trials.max_seconds * share, ratios));
  }
  return ratios;
}

StoredCosts LoadOrMeasureCosts(const std::string& path, std::string_view key,
                               absl::FunctionRef<absl::StatusOr<CostRatios>()> measure) {
  std::string why = "no state directory";
  if (!path.empty()) {
    absl::StatusOr<CostRatios> kept = Read(path, key);
    if (kept.ok()) return {*std::move(kept), absl::StrCat("read from ", path)};
    why = std::string(kept.status().message());
  }
  Stopwatch watch;
  absl::StatusOr<CostRatios> measured = measure();
  if (!measured.ok()) {
    return {
        {},
        absl::StrCat("built-in estimates; the measurement failed: ", measured.status().message())};
  }
  std::string report = absl::StrFormat("measured in %.2f s (%s)", watch.Lap(), why);
  if (!path.empty()) {
    const absl::Status kept = ReplaceSmallFile(path, measured->Serialize(key));
    absl::StrAppend(&report, kept.ok() ? absl::StrCat(", stored in ", path)
                                       : absl::StrCat(", not stored: ", kept.message()));
  }
  return {*std::move(measured), std::move(report)};
}

}  // namespace crout
