#include "kernels/costs/measure_costs.h"

#include <algorithm>
#include <cmath>

#include "kernels/device.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr int kTurns = 3;

template <class Method, class Owners, class NameOfMethod>
std::vector<const Method*> Named(const std::vector<std::string_view>& names, const Owners& owners,
                                 NameOfMethod name_of) {
  std::vector<const Method*> found;
  for (const std::string_view name : names) {
    for (const auto& owner : owners) {
      if (name_of(*owner) == name) found.push_back(owner.get());
    }
  }
  return found;
}

// One order and type.
struct Times {
  std::vector<double> algorithms;
  std::vector<double> solvers;
};

class Trials {
 public:
  Trials(ExecutionContext& context, const CostTrials& trials, Timer timer)
      : context_(context),
        algorithms_(Named<LuAlgorithm>(trials.algorithms, context.device().algorithms(),
                                       [](const LuAlgorithm& a) { return a.traits().name; })),
        solvers_(Named<TriangularSolver>(trials.solvers, context.device().solvers(),
                                         [](const TriangularSolver& s) { return s.name(); })),
        timer_(timer) {}

  // Until the clock says `end`.
  absl::Status Measure(DType dtype, const std::vector<int64_t>& orders, double end,
                       CostRatios& ratios) {
    double last = 0;  // seconds that the order before took in all
    int64_t last_order = 0;
    for (const int64_t n : orders) {
      const double start = timer_();
      const double growth =
          last_order == 0 ? 0
                          : std::pow(static_cast<double>(n) / static_cast<double>(last_order), 3);
      if (start + last * growth > end) break;
      CROUT_ASSIGN_OR_RETURN(const Times times, Time(dtype, n));
      for (size_t i = 0; i < algorithms_.size(); ++i) {
        ratios.Set(algorithms_[i]->traits().name, dtype, n,
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
    if (algorithms_.empty()) return absl::NotFoundError("none of the methods to be timed is here");
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

}  // namespace

absl::StatusOr<CostRatios> MeasureCosts(ExecutionContext& context, const CostTrials& trials,
                                        Timer timer) {
  CostRatios ratios;
  Trials both(context, trials, timer);
  const double start = timer();
  CROUT_RETURN_IF_ERROR(
      both.Measure(DType::kFloat64, trials.orders, start + trials.most_seconds / 2, ratios));
  CROUT_RETURN_IF_ERROR(
      both.Measure(DType::kFloat32, trials.orders, start + trials.most_seconds, ratios));
  return ratios;
}

}  // namespace crout
