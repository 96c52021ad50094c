// SPDX-License-Identifier: Apache-2.0

#include "kernels/costs/stored_costs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/util/small_file.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

absl::StatusOr<CostRatios> Read(const std::string& path, std::string_view key) {
  CROUT_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, CostRatios::kMaxTextBytes));
  return CostRatios::Parse(text, key);
}

}  // namespace

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
