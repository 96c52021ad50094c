// Measured costs that are kept between runs of a program.
#ifndef CROUT_KERNELS_COSTS_KEPT_COSTS_H_
#define CROUT_KERNELS_COSTS_KEPT_COSTS_H_

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/costs/cost_ratios.h"

namespace crout {

struct KeptCosts {
  CostRatios ratios;   // empty where they were neither kept nor could be measured
  std::string report;  // where they come from, for a log
};

// What the file `path` keeps for `key`; or, where it keeps nothing that fits, what `measure` finds,
// which then takes the file's place. An empty path: nothing is kept. A file that cannot be read or
// written is no error, but in the report.
KeptCosts KeepCosts(const std::string& path, std::string_view key,
                    absl::FunctionRef<absl::StatusOr<CostRatios>()> measure);

}  // namespace crout

#endif  // CROUT_KERNELS_COSTS_KEPT_COSTS_H_
