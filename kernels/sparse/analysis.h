// SPDX-License-Identifier: Apache-2.0

// Analysis of a sparse matrix for multifrontal LU factorization, before any numeric elimination.
#ifndef CROUT_KERNELS_SPARSE_ANALYSIS_H_
#define CROUT_KERNELS_SPARSE_ANALYSIS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout {

class StopCounter;

// Matching exchanges columns and scales rows and columns to make the diagonal large
// (sparse/matching.h). kAuto: only if ShouldUseMatching().
enum class MatchingMode : uint8_t { kAuto, kOff, kOn };

// Ordering method. kAuto takes nested dissection or minimum degree, whichever predicts less
// work. It uses only minimum degree if there is no ordering program, the matrix is small or has
// little work for its size, or its graph exceeds METIS's 32-bit indices.
enum class OrderingMode : uint8_t { kAuto, kMinimumDegree, kNestedDissection, kNatural };

// AnalysisOptions::dissection_work for factors that may be used on a GPU. Circuits and power grids
// have less work. Planar grids have more: with minimum degree their trees are deeper, and
// refactorizations and solves on an H100 take two to three times as long.
inline constexpr double kDissectionWork = 1000;
// AnalysisOptions::dissection_work for the host. For planar grids of up to 100,000 points, METIS
// takes four times as long as the factorization there and saves a sixth of its operations.
inline constexpr double kHostDissectionWork = 10000;

// Default of AnalysisOptions::pivot_threshold.
inline constexpr double kPivotThreshold = 0.01;

// Steps of an analysis: matching if needed, graph, ordering, fronts and their rows.
inline constexpr int kAnalysisSteps = 4;

struct AnalysisOptions {
  MatchingMode matching = MatchingMode::kAuto;
  OrderingMode ordering = OrderingMode::kAuto;
  // Path of crout-order, which runs METIS, and AMD for graphs beyond IsMinimumDegreeFast()
  // (sparse/ordering_process.h). Empty: none.
  std::string ordering_program;
  // Operations per unknown, with minimum degree, from which kAuto tries nested dissection.
  double dissection_work = kDissectionWork;
  // Value for Analysis::pivot_threshold, in [0, 1]. 0 accepts any pivot that PivotPerturbation
  // allows.
  double pivot_threshold = kPivotThreshold;
  // Distinct unknowns that are not eliminated. Their rows and columns form the Schur complement
  // (see Analysis::kept). Not compatible with matching, which moves columns: kAuto then means kOff,
  // and kOn is INVALID_ARGUMENT.
  std::vector<int32_t> keep;
  // Type of the factor, whose range also affects kAuto. Unset: the matrix's type.
  std::optional<DType> factor_dtype;
  // Called before the analysis takes memory beyond AnalysisBytes(n). The argument is the new total
  // of bytes held beyond that, which may be less than before. An error ends the analysis. The last
  // argument plus AnalysisBytes(n) is at least the result's bytes(). May be empty.
  std::function<absl::Status(size_t bytes)> claim;
  absl::Status Claim(size_t bytes) const { return claim ? claim(bytes) : absl::OkStatus(); }
  // Called with the number of finished steps after each step, before `stop` is checked. May be
  // empty.
  std::function<void(int steps)> report_steps;
};

// Digest of n and the pattern, in two halves. Independent of the matrix's values and type. Not
// cryptographic.
struct PatternKey {
  uint64_t half[2] = {0, 0};
  friend bool operator==(const PatternKey&, const PatternKey&) = default;
};
PatternKey PatternDigest(const AnySparse& a);
// The result of each function with a `counter` is undefined once the counter stops.
PatternKey PatternDigest(const AnySparse& a, StopCounter& counter);
// First half of `key` as 16 lower-case hexadecimal digits. PatternDigest() is a sum over the
// positions of A, so clients can compute it from entries in any order.
std::string PatternText(const PatternKey& key);

// Permutations p, q and scales r, c of a matrix A of order n, and the tree of fronts of
//   B(k, l) = r[p_k] A(p_k, q_l) c[q_l],   p = row_order, q = column_order.
// B's pattern is treated as symmetric: if (k, l) is an entry, (l, k) may be one, and fill-in occurs
// at both. "Position" is an index of B; "row" and "column" are indices of A. All are 0-based.
//
// Front f eliminates the d1 positions [first_position[f], first_position[f + 1]). It updates the d2
// positions border[border_start[f], border_start[f + 1]), which are ascending and all later. Fronts
// are in postorder: children come before their parent, and the fronts of a subtree are consecutive.
// See sparse/multifrontal_factor.h for the layout of the numeric factor.
//
// An analysis depends only on the pattern of A, with two exceptions. If `matched`, `column_order`
// and the scales also depend on the values. If `regrouped`, the fronts do. An analysis
// remains valid for other values on the same pattern; its quality then depends on their diagonal
// (IsSuitableForValues). Immutable once made; any number of threads may read it.
struct Analysis {
  int64_t n = 0;
  int64_t nonzeros = 0;
  PatternKey pattern;  // PatternDigest() of A

  // >= 0: A is structurally singular. A largest set of nonzero entries in distinct rows and columns
  // contains no entry of this row. All fields below are then empty. Only determined with matching.
  int64_t unmatched_row = -1;

  // Number of kept unknowns. They are the d1 positions of the last front, the only root, in the
  // order given. Its d1 x d1 block F11 becomes the Schur complement and is not factored. Such a
  // factor supports neither solves nor determinants.
  int64_t kept = 0;

  bool matched = false;
  // A pivot is acceptable if it is at least this fraction of the largest entry of its column in its
  // front, including border rows that are eliminated later.
  double pivot_threshold = kPivotThreshold;
  // True if every front was found to have acceptable pivots for the values it was checked with
  // (sparse/delayed_pivots.h).
  bool delayed = false;
  // True if the fronts were changed for the values of one matrix, by Postpone or DelayPivots.
  bool regrouped = false;
  // "amd", "metis" or "natural"; a string literal.
  std::string_view ordering;

  std::vector<int32_t> row_order;     // p
  std::vector<int32_t> column_order;  // q; equal to p unless matched or postponed
  std::vector<double> row_scale;      // r, c by A's indices, > 0; empty: all 1, as without matching
  std::vector<double> column_scale;

  // The tree. Vectors have fronts() + 1 elements, except `parent`, which is -1 for roots.
  std::vector<int32_t> first_position;
  std::vector<int64_t> border_start;
  std::vector<int32_t> parent;
  std::vector<int32_t> child_start;  // children of f: child[child_start[f], child_start[f + 1])
  std::vector<int32_t> child;        // ascending

  // Indexed by border_start: the position, and its place among the parent's d1 + d2 positions, the
  // parent's own positions first.
  std::vector<int32_t> border;
  std::vector<int32_t> place_in_parent;

  // Roots have level 0; a child's level is its parent's plus one. The fronts of level v are
  // level_front[level_start[v], level_start[v + 1]), ascending.
  std::vector<int32_t> level_start;  // levels() + 1
  std::vector<int32_t> level_front;

  // Offset of each front's part of the factor, in elements. Has fronts() + 1 elements; the last is
  // factor_entries().
  std::vector<int64_t> factor_start;
  // Offset of each front's contribution (d2 x d2, column-major) within its level's contributions,
  // and the size of each level's contributions, in elements.
  std::vector<int64_t> contribution_start;
  std::vector<int64_t> level_contribution_entries;

  // Sum of 2/3 d1^3 + 2 d1^2 d2 + 2 d1 d2^2 over the factored fronts. A complex operation counts as
  // one.
  double flops = 0;
  // Peak number of contribution elements in a postorder traversal with a stack, counting a front's
  // own contribution and its children's.
  int64_t stack_entries = 0;
  // Largest sum of two successive levels' contributions, the minimum for a traversal by levels.
  int64_t level_pair_entries = 0;
  int64_t largest_front = 0;  // max d1 + d2

  int64_t fronts() const { return static_cast<int64_t>(parent.size()); }
  int64_t levels() const { return static_cast<int64_t>(level_contribution_entries.size()); }
  int64_t eliminated(int64_t f) const { return first_position[f + 1] - first_position[f]; }  // d1
  int64_t bordered(int64_t f) const { return border_start[f + 1] - border_start[f]; }        // d2
  // True if front f consists of the kept unknowns; it is only assembled.
  bool is_kept(int64_t f) const { return kept > 0 && f + 1 == fronts(); }

  // Stored entries of L and U, without the unit diagonal. Includes zeros from merged fronts.
  int64_t factor_entries() const { return factor_start.empty() ? 0 : factor_start.back(); }

  // Size of this object including its vectors, in bytes.
  size_t bytes() const;
};

// Analyzes `a`. Reads only the pattern unless `options.matching` is kOn or kAuto, which needs the
// values. Polls `stop` every StopCounter::kStepsBetweenStops steps of its loops, and about every 30
// ms while a child process runs; a stop kills the child. A minimum degree ordering in this process
// (IsMinimumDegreeFast) takes about 0.3 s and does not poll.
//
// INVALID_ARGUMENT: a NaN or Inf entry, with its position, if values are read; or indices out of
// order or out of range. The error of options.claim. CANCELLED: `stop` returned true.
// FAILED_PRECONDITION: no ordering program, and more work than IsMinimumDegreeFast().
// RESOURCE_EXHAUSTED: a factor beyond 2^62 bytes, or the ordering program failed for both methods.
// If one method fails, the other is used; `ordering` names it.
absl::StatusOr<Analysis> Analyze(const AnySparse& a, const AnalysisOptions& options,
                                 StopRequested stop);

// Returns the analysis with each of these positions (ascending) moved to the parent of its front,
// where more rows are candidates for its pivot. This makes a factor with perturbed pivots accurate,
// at the cost of larger fronts. Positions of roots stay. `interchanges` are the n elements at
// MultifrontalLayout::pivots of the factor in which the pivots were perturbed. Positions are
// renumbered and rows may be paired with other columns; the scales stay. Repeat it as long as the
// number of perturbed pivots decreases. `a` has the analyzed pattern. Errors and `claim` are as for
// Analyze.
absl::StatusOr<Analysis> Postpone(const Analysis& analysis, const AnySparse& a,
                                  std::span<const int32_t> positions,
                                  std::span<const int32_t> interchanges,
                                  const AnalysisOptions& options, StopRequested stop);

// Returns the same analysis with new scales, computed from the values of `a` by
// MaximumProductMatching. Use it if the analysis does not suit these values (IsSuitableForValues).
// Orders and fronts stay. Returns nullopt if `a` is structurally singular. Not for kept unknowns.
// `a` has the analyzed pattern. Errors and `claim` are as for Analyze.
absl::StatusOr<std::optional<Analysis>> Rescale(const Analysis& analysis, const AnySparse& a,
                                                const AnalysisOptions& options, StopRequested stop);

// Memory, in bytes, that an analysis of order n takes without a claim, result included. Memory of
// the child process, and memory that depends on the number of entries, is claimed.
size_t AnalysisBytes(int64_t n);

// True if a diagonal entry is missing, zero, or less than a hundredth of the largest entry of its
// row or column. Also true if the largest entries of rows or columns differ by more than 1e4, or
// are outside the factor type's SafeRange.
bool ShouldUseMatching(const AnySparse& a, DType factor_dtype);
bool ShouldUseMatching(const AnySparse& a, DType factor_dtype, StopCounter& counter);

// True if the analysis suits the values of `a`, which has the analyzed pattern, for a factor of
// this type: ShouldUseMatching would return false for B.
bool IsSuitableForValues(const Analysis& analysis, const AnySparse& a, DType factor_dtype);
bool IsSuitableForValues(const Analysis& analysis, const AnySparse& a, DType factor_dtype,
                         StopCounter& counter);

// True if `a` equals its transpose bit for bit, except for the sign of zeros.
bool IsSymmetric(const AnySparse& a);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ANALYSIS_H_
