// SPDX-License-Identifier: Apache-2.0

// Evaluates and times all cases of one matrix and type.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_ROUND_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_ROUND_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "kernels/factorization.h"
#include "tests/bench/crout_bench/cases.h"
#include "tests/bench/crout_bench/options.h"
#include "tests/bench/crout_bench/problems.h"
#include "tests/bench/crout_bench/workbench.h"

namespace crout::bench {

// A step of a sequence of matrices with relative change `delta` per step.
struct Step {
  double delta = 0;
  int number = 0;  // 0: the first matrix, not part of a sequence
};

// The cases of one matrix and of the steps that follow it. The constructor's arguments must outlive
// the object.
class Round {
 public:
  Round(Workbench& bench, const Problem& problem, const Options& options,
        const std::vector<const LuAlgorithm*>& algorithms);

  // Factors the workbench's matrix by the iterative methods. The next Run() starts from these
  // factors.
  void FactorStarts();

  // Appends a JSON object for each case to `cases`; the object of a failed case has its error.
  // `values` is the workbench's matrix. Iterative methods start from the factors of the previous
  // step, if any.
  void Run(const std::vector<double>& values, const Step& step, Json& cases);

  // Returns the patterns of A and of the factor of the first successful iterative case, or null if
  // there is none.
  const Json& pattern() const { return pattern_; }

 private:
  struct Entry {
    Case c;
    std::optional<Factorization> start;  // c.parameters.start is a view of this factor
    std::optional<Factorization> next;   // the next step starts from this factor
  };

  Json Describe(const Case& c, const Step& step) const;
  absl::Status EvaluateEntry(const std::vector<double>& values, const Step& step, Entry& entry,
                             Json& json);
  void TimeAll(std::vector<Json>& results);
  void AdvanceStart(Entry& entry);

  Workbench& bench_;
  const Problem& problem_;
  const Options& options_;
  std::vector<Entry> entries_;
  Json pattern_;
};

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_ROUND_H_
