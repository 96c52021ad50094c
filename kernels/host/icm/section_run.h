// SPDX-License-Identifier: Apache-2.0

// Iteration over sections, shared by both host runs of the iterative Crout method (icm_run.h and
// published_run.cc): order, parallelism, sweep limit and outcome.
#ifndef CROUT_KERNELS_HOST_ICM_SECTION_RUN_H_
#define CROUT_KERNELS_HOST_ICM_SECTION_RUN_H_

#include <cstdint>
#include <vector>

#include "kernels/host/device/parallel_for.h"
#include "kernels/icm/run_record.h"
#include "kernels/stop_requested.h"

namespace crout::host {

class SectionRun {
 public:
  // Outcome of sweeping one section, with RunRecord's fields. kRunning: the section converged.
  struct Ending {
    RunOutcome outcome = RunOutcome::kRunning;
    int64_t row = 0;
    int64_t column = 0;
    int64_t sweeps = 0;
  };

  // `record` has its grid set and its counts zero.
  SectionRun(RunRecord& record, int64_t sweep_limit, int cores, StopRequested stop)
      : record_(record),
        grid_(record.grid),
        sweep_limit_(sweep_limit),
        cores_(cores),
        stop_(stop) {}

  // Calls section(d), which returns LAPACK's info, for each diagonal section. Stops when one
  // returns a nonzero info or concludes the run. Returns the last info.
  template <class Section>
  int64_t Run(Section section) {
    int64_t info = 0;
    for (int64_t d = 0; d < grid_.count() && info == 0 && going(); ++d) info = section(d);
    if (going()) record_.outcome = RunOutcome::kDone;
    return info;
  }

  // True until the run has an outcome.
  bool going() const { return record_.outcome == RunOutcome::kRunning; }

  // Calls f(i, core), which returns an Ending, for the sections after d in parallel. Each section
  // runs to its end, and the first failed section determines the outcome, so the outcome does not
  // depend on the threads.
  template <class F>
  void ForSectionsAfter(int64_t d, const F& f) {
    std::vector<Ending> endings(grid_.count());
    ParallelFor(cores_, cores_, [&](int64_t core) {
      for (int64_t i = d + 1 + core; i < grid_.count(); i += cores_) endings[i] = f(i, core);
    });
    for (const Ending& ending : endings) Conclude(ending);
  }

  // Counts one more sweep of section (i, j). Returns false, with the reason in `ending`, if the run
  // was stopped or the section reached the sweep limit.
  bool CountSweep(int64_t i, int64_t j, Ending& ending) {
    int64_t& sweeps = record_.section_sweeps()[i + j * grid_.count()];
    if (stop_()) ending.outcome = RunOutcome::kStopped;
    if (sweeps == sweep_limit_) ending = {RunOutcome::kSweepLimit, i, j, sweeps};
    if (ending.outcome != RunOutcome::kRunning) return false;
    ++sweeps;
    return true;
  }

  // Sets the run's outcome unless it already has one.
  void Conclude(const Ending& ending) {
    if (!going()) return;
    record_.outcome = ending.outcome;
    record_.row = ending.row;
    record_.column = ending.column;
    record_.sweeps = ending.sweeps;
  }

 private:
  RunRecord& record_;
  const SectionGrid grid_;
  const int64_t sweep_limit_;
  const int cores_;
  const StopRequested stop_;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_ICM_SECTION_RUN_H_
