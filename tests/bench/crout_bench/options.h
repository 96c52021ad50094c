// SPDX-License-Identifier: Apache-2.0

// Command-line options of crout-bench.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_OPTIONS_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_OPTIONS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/lu_parameters.h"

namespace crout::bench {

// Stands for the published section size, which depends on the order and the block size.
inline constexpr int64_t kPublishedSection = -1;

struct FamilyOrders {
  std::string family;
  std::vector<int64_t> orders;
};

struct Options {
  std::string device = "host";
  int threads = 0;                      // of the host; 0: one per core
  std::vector<std::string> algorithms;  // empty: all of the device
  // Inputs: first the files below `matrices` whose path there matches `match`, then generated
  // matrices.
  std::string matrices;
  std::string match = "*";
  int64_t min_n = 1;
  int64_t max_n = std::numeric_limits<int32_t>::max();
  std::vector<FamilyOrders> generate;
  std::vector<DType> dtypes{DType::kFloat64};
  // Every combination of these values is a case, for algorithms that have the parameter. Unset or
  // 0: the default.
  std::vector<std::optional<PivotCriterion>> pivotings{std::nullopt};
  std::vector<double> tolerances{0};
  std::vector<double> absolute_tolerances{0};
  std::vector<MethodVariant> variants{MethodVariant::kFast};
  std::vector<int64_t> section_sizes{0};
  std::vector<int> block_sizes{0};
  int64_t sweep_limit = 0;
  // Relative changes per step. Each gives a sequence of matrices for the iterative methods.
  std::vector<double> warm;
  int steps = 3;
  bool solvers = false;  // every solver with the same factors, ten right-hand sides of ones
  bool direct = false;   // direct solvers beside getrf and getrs, 1 and n right-hand sides
  int repetitions = 10;
  double case_seconds = 60;  // time after which a case is repeated no more
  int refine = 5;            // most refinement steps of the second solve
  int64_t accuracy_limit = 12000;
  int pattern_cells = 96;  // cells per side of a sparsity pattern; 0: none
  std::string output;      // empty: standard output
};

// Adds the flags to `app`. Parsing fills `options`.
void AddOptions(CLI::App& app, Options& options);

// Adds --dtype only.
void AddTypes(CLI::App& app, Options& options);

// Parses for example "thesis:558,1089".
absl::StatusOr<FamilyOrders> ParseFamily(std::string_view text);

// Parses "default", "none", "partial", "interval:LOW:HIGH" or "threshold:T". The numbers are
// optional.
absl::StatusOr<std::optional<PivotCriterion>> ParsePivoting(std::string_view text);

// The inverse of ParsePivoting(), except for "default".
std::string FormatPivoting(const PivotCriterion& criterion);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_OPTIONS_H_
