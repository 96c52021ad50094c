// SPDX-License-Identifier: Apache-2.0

// Measures the ratios of a device's times to its cost tables, and stores them between runs of a
// program.
#ifndef CROUT_KERNELS_COSTS_MEASURED_COSTS_H_
#define CROUT_KERNELS_COSTS_MEASURED_COSTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/costs/cost_ratios.h"
#include "kernels/costs/trial_problem.h"
#include "kernels/execution_context.h"

namespace crout {

struct CostTrials {
  std::vector<int64_t> orders;  // ascending
  double max_seconds = 2;       // approximate limit for both real types together
};

// Times the methods with MethodTraits::is_timed in both real types and divides by their
// predictions. Methods run in turns, and the median counts. For each order and type, either all
// methods are measured or none, so that measured times are never compared with predictions. Solvers
// use the factors of the first algorithm. Skips larger orders if the times of smaller ones predict
// that they exceed the limit. Returns the error of a method that fails.
absl::StatusOr<CostRatios> MeasureCosts(ExecutionContext& context, const CostTrials& trials,
                                        Timer timer = SteadySeconds);

struct StoredCosts {
  CostRatios ratios;   // empty if they were neither stored nor measurable
  std::string report;  // their source, for a log
};

// Returns the costs stored in the file `path` for `key`. If the file has none that match, calls
// `measure` and stores the result there. With an empty path, nothing is stored. A failure to read
// or write the file is not an error; it appears in the report.
StoredCosts LoadOrMeasureCosts(const std::string& path, std::string_view key,
                               absl::FunctionRef<absl::StatusOr<CostRatios>()> measure);

}  // namespace crout

#endif  // CROUT_KERNELS_COSTS_MEASURED_COSTS_H_
