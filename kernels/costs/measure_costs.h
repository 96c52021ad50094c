// Measures how a device's speed differs from its cost tables.
#ifndef CROUT_KERNELS_COSTS_MEASURE_COSTS_H_
#define CROUT_KERNELS_COSTS_MEASURE_COSTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/costs/cost_ratios.h"
#include "kernels/costs/trial_problem.h"
#include "kernels/execution_context.h"

namespace crout {

struct CostTrials {
  std::vector<int64_t> orders;  // ascending
  double most_seconds = 2;      // for both real types together, about
};

// Times the device's methods that say so (MethodTraits::is_timed) in turns, medians counting, in
// both real types, and divides by what each predicts. All of one order and type are measured or
// none: measured times of some and guesses of others must not be compared. The first algorithm's
// factors are those that the solvers solve with. Larger orders are left out where they would take
// too long, from what the ones before took. The error of a method that fails.
absl::StatusOr<CostRatios> MeasureCosts(ExecutionContext& context, const CostTrials& trials,
                                        Timer timer = SteadySeconds);

}  // namespace crout

#endif  // CROUT_KERNELS_COSTS_MEASURE_COSTS_H_
