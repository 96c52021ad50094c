// SPDX-License-Identifier: Apache-2.0

// The outcome of an iterative Crout run, in memory that Factor leaves for Finish.
#ifndef CROUT_KERNELS_ICM_RUN_RECORD_H_
#define CROUT_KERNELS_ICM_RUN_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/icm/sections.h"
#include "kernels/lu_parameters.h"

namespace crout {

enum class RunOutcome : int32_t {
  kRunning,
  kDone,        // complete, singular or not
  kStopped,     // stopped on request
  kSweepLimit,  // section (row, column) did not converge
  kNotFinite,   // final element (row, column) is Inf or NaN
};

// Followed in memory by int64_t arrays: sweeps of each section (count * count, column-major), rows
// moved below each diagonal section (count), and bad elements handled there (count).
struct RunRecord {
  SectionGrid grid;
  RunOutcome outcome = RunOutcome::kRunning;
  int32_t warm = 0;
  int32_t block_size = 0;
  MethodVariant variant = MethodVariant::kFast;
  int64_t row = 0;  // see RunOutcome; 0-based
  int64_t column = 0;
  int64_t sweeps = 0;  // sweeps of section (row, column) at the limit

  int64_t* section_sweeps() { return reinterpret_cast<int64_t*>(this + 1); }
  const int64_t* section_sweeps() const { return reinterpret_cast<const int64_t*>(this + 1); }
  int64_t* pivots() { return section_sweeps() + grid.count() * grid.count(); }
  const int64_t* pivots() const { return section_sweeps() + grid.count() * grid.count(); }
  int64_t* bad_elements() { return pivots() + grid.count(); }
  const int64_t* bad_elements() const { return pivots() + grid.count(); }

  // Number of int64_t values that follow the record.
  int64_t counts() const { return (grid.count() + 2) * grid.count(); }
};

constexpr size_t RunRecordBytes(const SectionGrid& grid) {
  const auto count = static_cast<size_t>(grid.count());
  return sizeof(RunRecord) + (count + 2) * count * sizeof(int64_t);
}

// Implements LuAlgorithm::Finish for a record in host memory.
absl::Status FinishRun(const RunRecord& record, IterationReport* report);

}  // namespace crout

#endif  // CROUT_KERNELS_ICM_RUN_RECORD_H_
