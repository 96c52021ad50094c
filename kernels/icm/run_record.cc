// SPDX-License-Identifier: Apache-2.0

#include "kernels/icm/run_record.h"

#include "absl/strings/str_cat.h"

namespace crout {
namespace {

void Fill(const RunRecord& record, IterationReport& report) {
  const int64_t count = record.grid.count();
  report.warm = record.warm != 0;
  report.section_size = record.grid.size;
  report.variant = record.variant;
  report.block_size = record.block_size;
  report.sections = count;
  report.sweeps.assign(record.section_sweeps(), record.section_sweeps() + count * count);
  report.pivots.assign(record.pivots(), record.pivots() + count);
  report.bad_elements.assign(record.bad_elements(), record.bad_elements() + count);
}

}  // namespace

absl::Status FinishRun(const RunRecord& record, IterationReport* report) {
  if (report != nullptr) Fill(record, *report);
  switch (record.outcome) {
    case RunOutcome::kDone:
      return absl::OkStatus();
    case RunOutcome::kStopped:
      return absl::CancelledError("the job was stopped between sweeps");
    case RunOutcome::kSweepLimit:
      return absl::AbortedError(absl::StrCat(
          "section (", record.row, ", ", record.column, ") of ", record.grid.count(), " x ",
          record.grid.count(), " did not converge within ", record.sweeps,
          " sweeps. Raise the sweep limit or the tolerance, or use another algorithm"));
    case RunOutcome::kNotFinite:
      return absl::InvalidArgumentError(absl::StrCat(
          "the factor exceeds the range of its type: element (", record.row, ", ", record.column,
          "), 0-based, is not finite. Use a method with pivoting or a wider type"));
    case RunOutcome::kRunning:
      break;
  }
  return absl::InternalError("the iterative method did not finish");
}

}  // namespace crout
