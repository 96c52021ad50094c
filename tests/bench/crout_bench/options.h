// SPDX-License-Identifier: Apache-2.0

// Command-line options of crout-bench. Parse functions return INVALID_ARGUMENT for invalid text.
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

// Value for the published section size, which depends on the order and the block size.
inline constexpr int64_t kPublishedSection = -1;

struct FamilyOrders {
  std::string family;
  std::vector<int64_t> orders;
};

struct Options {
  std::string device = "host";
  int threads = 0;                      // threads of the host; 0: one per core
  std::vector<std::string> algorithms;  // empty: all algorithms of the device
  // The inputs are the files in `matrices` and its subfolders whose relative path matches `match`,
  // then the generated matrices. Files with orders outside [min_n, max_n] are skipped.
  std::string matrices;
  std::string match = "*";
  int64_t min_n = 1;
  int64_t max_n = std::numeric_limits<int32_t>::max();
  std::vector<FamilyOrders> generate;
  std::vector<DType> dtypes{DType::kFloat64};
  // Each combination of these values is a case of the algorithms that support the parameters. Unset
  // or 0: the default.
  std::vector<std::optional<PivotCriterion>> pivotings{std::nullopt};
  std::vector<double> tolerances{0};
  std::vector<double> absolute_tolerances{0};
  std::vector<MethodVariant> variants{MethodVariant::kFast};
  std::vector<int64_t> section_sizes{0};
  std::vector<int> block_sizes{0};
  int64_t sweep_limit = 0;
  // Relative changes per step; 0: the family's own steps. Each is a sequence of matrices for the
  // iterative methods.
  std::vector<double> warm;
  int steps = 3;         // number of steps of a sequence
  bool solvers = false;  // compare all solvers with the same factors
  bool direct = false;   // compare direct solvers with getrf and getrs
  int repetitions = 10;
  double case_seconds = 60;        // a case is not repeated after this time
  int refine = 5;                  // maximum number of refinement steps of the second solve
  int64_t accuracy_limit = 12000;  // largest order for which factors are measured
  int pattern_cells = 96;          // cells per side of a sparsity pattern; 0: no pattern
  std::string output;              // empty: standard output
};

// Adds the flags to `app`. Parsing fills `options`.
void AddOptions(CLI::App& app, Options& options);

// Adds only the flag --dtype.
void AddTypes(CLI::App& app, Options& options);

// Parses a family and its orders, such as "thesis:558,1089".
absl::StatusOr<FamilyOrders> ParseFamily(std::string_view text);

// Parses "default", "none", "partial", "interval:LOW:HIGH" or "threshold:T". The numbers are
// optional.
absl::StatusOr<std::optional<PivotCriterion>> ParsePivoting(std::string_view text);

// Formats a criterion for ParsePivoting().
std::string FormatPivoting(const PivotCriterion& criterion);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_OPTIONS_H_
