// SPDX-License-Identifier: Apache-2.0

// Measured costs stored between runs of a program.
#ifndef CROUT_KERNELS_COSTS_STORED_COSTS_H_
#define CROUT_KERNELS_COSTS_STORED_COSTS_H_

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/costs/cost_ratios.h"

namespace crout {

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

#endif  // CROUT_KERNELS_COSTS_STORED_COSTS_H_
