// The analysis of a sparse matrix for its multifrontal LU factorization: what is known before a
// number is eliminated.
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

// Whether columns are exchanged, and rows and columns scaled, so that the diagonal is large
// (sparse/matching.h). kAuto: where the matrix asks for it (AsksForMatching).
enum class MatchingMode : uint8_t { kAuto, kOff, kOn };

// kAuto: nested dissection or minimum degree, whichever predicts less work; minimum degree alone
// where there is no program, the matrix is small or has little work for its size, or its graph is
// beyond METIS's 32-bit indices.
enum class OrderingMode : uint8_t { kAuto, kMinimumDegree, kNestedDissection, kNatural };

// AnalysisOptions::pivot_threshold, unless the caller has another.
inline constexpr double kPivotThreshold = 0.01;

// What an analysis does one after the other: it decides on matching and matches, makes the graph,
// orders it, and finds fronts and their rows.
inline constexpr int kAnalysisSteps = 4;

struct AnalysisOptions {
  MatchingMode matching = MatchingMode::kAuto;
  OrderingMode ordering = OrderingMode::kAuto;
  // Path of crout-order, the program that runs METIS, and AMD beyond ShortMinimumDegree()
  // (sparse/ordering_process.h); empty: none.
  std::string ordering_program;
  // Analysis::pivot_threshold, in [0, 1]. 0: any pivot that PivotPerturbation allows.
  double pivot_threshold = kPivotThreshold;
  // Unknowns, different ones, that are not to be eliminated: what is left of A in their rows and
  // columns is then its Schur complement (Analysis::kept). Not with matching, which takes columns
  // elsewhere: kAuto is kOff then, kOn INVALID_ARGUMENT.
  std::vector<int32_t> keep;
  // The factor's type, whose range decides on kAuto too; unset: the matrix's.
  std::optional<DType> factor_dtype;
  // Called before memory is taken beyond AnalysisBytes(n), with the bytes that are held beyond it
  // from then on, in all, which may be less than before; an error ends the analysis. Those of the
  // last call and AnalysisBytes(n) together are no less than the analysis' own bytes(). Not called
  // where it is empty.
  std::function<absl::Status(size_t bytes)> claim;
  absl::Status Claim(size_t bytes) const { return claim ? claim(bytes) : absl::OkStatus(); }
  // Called as each step ends, with how many have ended, before `stop` is asked. May be empty.
  std::function<void(int steps)> tell;
};

// Two halves of a digest of n and the pattern: equal for matrices that differ in their values, and
// in their types, alone. Not cryptographic.
struct PatternKey {
  uint64_t half[2] = {0, 0};
  friend bool operator==(const PatternKey&, const PatternKey&) = default;
};
PatternKey PatternDigest(const AnySparse& a);
// The result of each function with a `counter` is undefined once the counter stops.
PatternKey PatternDigest(const AnySparse& a, StopCounter& counter);

// Of a matrix A of order n: permutations p, q, scales r, c and the tree of fronts of
//   B(k, l) = r[p_k] A(p_k, q_l) c[q_l],   p = row_order, q = column_order,
// whose pattern is taken as symmetric: with (k, l) an entry may be at (l, k), and fill-in at both.
// "Position" is an index of B; "row" and "column" are A's. All 0-based.
//
// Front f eliminates the positions [first_position[f], first_position[f + 1]), d1 of them, and
// changes in their place the d2 positions border[border_start[f], border_start[f + 1]), which are
// ascending and all later. Fronts are in postorder: children come before their parent, and those of
// one subtree are consecutive. Where the numeric factor lies is in sparse/multifrontal_factor.h.
//
// It depends on the pattern of A alone, but for `column_order` and the scales where `matched`: then
// on values too; and so where something was postponed. For other values on the same pattern it is
// still right, and as good as its diagonal is then (SuitsValues). Immutable once made: any number
// of threads may read it.
struct Analysis {
  int64_t n = 0;
  int64_t nonzeros = 0;
  PatternKey pattern;  // PatternDigest of A

  // >= 0: A is structurally singular, and this is a row that no choice of n entries of different
  // rows and columns, none of them zero, has an entry in, while the other rows have. Everything
  // below is empty then. Only looked for with matching.
  int64_t unmatched_row = -1;

  // Where unknowns are kept: of the last front, which is the only root, the d1, in the order in
  // which they were given. Its F11, d1 x d1, becomes the Schur complement, and is not factored:
  // such a factor is for no solve, and of no determinant.
  int64_t kept = 0;

  bool matched = false;
  // A pivot is acceptable where it is at least this times the largest of its column in its front,
  // rows of the contribution that are eliminated later included.
  double pivot_threshold = kPivotThreshold;
  // Whether every front was found to have acceptable pivots (sparse/delayed_pivots.h), for the
  // values that it was found with.
  bool delayed = false;
  // "amd", "metis" or "natural"; a literal.
  std::string_view ordering;

  std::vector<int32_t> row_order;     // p
  std::vector<int32_t> column_order;  // q; equal to p unless matched or postponed
  std::vector<double> row_scale;  // r, c by A's indices, > 0; empty: all 1, as where not matched
  std::vector<double> column_scale;

  // The tree. fronts() + 1, but for `parent`: -1 of roots.
  std::vector<int32_t> first_position;
  std::vector<int64_t> border_start;
  std::vector<int32_t> parent;
  std::vector<int32_t> child_start;  // children of f: child[child_start[f], child_start[f + 1])
  std::vector<int32_t> child;        // ascending

  // By border_start. The position, and its place in the parent's d1 + d2 (those of the parent's own
  // first).
  std::vector<int32_t> border;
  std::vector<int32_t> place_in_parent;

  // Level 0 are the roots, that of a child is its parent's plus one. The fronts of level v are
  // level_front[level_start[v], level_start[v + 1]), ascending.
  std::vector<int32_t> level_start;  // levels() + 1
  std::vector<int32_t> level_front;

  // Where each front's part of the factor begins, in elements; fronts() + 1, the last is
  // factor_entries().
  std::vector<int64_t> factor_start;
  // Where each front's contribution (d2 x d2, column-major) begins in the contributions of its
  // level, in elements; and the elements of each level's contributions.
  std::vector<int64_t> contribution_start;
  std::vector<int64_t> level_contribution_entries;

  // 2/3 d1^3 + 2 d1^2 d2 + 2 d1 d2^2 over the fronts that are factored: a complex operation counts
  // as one.
  double flops = 0;
  // Elements of contributions that a traversal in postorder keeps at once, with a stack, a front's
  // own beside its children's.
  int64_t stack_entries = 0;
  // The largest sum of two successive levels' contributions: what a traversal by levels keeps at
  // least.
  int64_t level_pair_entries = 0;
  int64_t largest_front = 0;  // max d1 + d2

  int64_t fronts() const { return static_cast<int64_t>(parent.size()); }
  int64_t levels() const { return static_cast<int64_t>(level_contribution_entries.size()); }
  int64_t eliminated(int64_t f) const { return first_position[f + 1] - first_position[f]; }  // d1
  int64_t bordered(int64_t f) const { return border_start[f + 1] - border_start[f]; }        // d2
  // Whether front f is that of the kept unknowns, which is assembled alone.
  bool is_kept(int64_t f) const { return kept > 0 && f + 1 == fronts(); }

  // Entries of L and U as they are stored, the unit diagonal not counted; of which zeros that
  // merged fronts brought are a part.
  int64_t factor_entries() const { return factor_start.empty() ? 0 : factor_start.back(); }

  // Of this object and all that it holds.
  size_t bytes() const;
};

// Analyses a. With matching a's values are read, else only its pattern (kAuto reads them to
// decide). Polls `stop` every StopCounter::kStepsBetweenStops steps of its loops, and about every
// 30 ms while a child process runs, which it then ends. A minimum degree ordering in this process
// (ShortMinimumDegree) takes about 0.3 s and does not poll.
//
// INVALID_ARGUMENT: an entry that is NaN or Inf, where values are read, with its place, or indices
// that are out of order or out of range; the error of options.claim; CANCELLED by `stop`;
// FAILED_PRECONDITION: no ordering program, and more work than ShortMinimumDegree();
// RESOURCE_EXHAUSTED: a factor beyond 2^62 bytes, or an ordering program that fails for both
// methods. Where one method makes no order, the other's is taken: `ordering` says which.
absl::StatusOr<Analysis> Analyze(const AnySparse& a, const AnalysisOptions& options,
                                 StopRequested stop);

// The analysis with each of these positions (ascending) eliminated by its front's parent, where
// more rows may be its pivot's: what makes an accurate factor of one with perturbed pivots, at the
// cost of larger fronts. Those of roots stay. `interchanges`: the n numbers at
// MultifrontalLayout::pivots of the factor whose pivots were perturbed there. Positions are
// numbered anew, rows may have got other columns; the scales stay. Best repeated while fewer pivots
// are perturbed each time. Errors and `claim` are as Analyze's. `a` has the pattern that was
// analysed.
absl::StatusOr<Analysis> Postpone(const Analysis& analysis, const AnySparse& a,
                                  std::span<const int32_t> positions,
                                  std::span<const int32_t> interchanges,
                                  const AnalysisOptions& options, StopRequested stop);

// The same analysis with row_scale and column_scale of a's values, as MaximumProductMatching finds
// them: for values that the analysis does not suit (SuitsValues). Orders and fronts stay. Empty
// where a is structurally singular. Not for kept unknowns. Errors and `claim` are as Analyze's.
// `a` has the pattern that was analysed.
absl::StatusOr<std::optional<Analysis>> Rescale(const Analysis& analysis, const AnySparse& a,
                                                const AnalysisOptions& options, StopRequested stop);

// Memory that an analysis of a matrix of order n takes without asking, its result included. What
// the child process takes, and what depends on the entries, is asked for.
size_t AnalysisBytes(int64_t n);

// Whether some entry of the diagonal is missing, zero, or less than a hundredth of its row's or its
// column's largest, or the largest of rows or columns are more than 1e4 apart, or outside the
// factor type's SafeRange.
bool AsksForMatching(const AnySparse& a, DType factor_dtype);
bool AsksForMatching(const AnySparse& a, DType factor_dtype, StopCounter& counter);

// Whether `a`, of the pattern that was analysed, would be given an analysis like this one for a
// factor of this type: AsksForMatching would be false of B.
bool SuitsValues(const Analysis& analysis, const AnySparse& a, DType factor_dtype);
bool SuitsValues(const Analysis& analysis, const AnySparse& a, DType factor_dtype,
                 StopCounter& counter);

// Whether a is equal to its transpose, to the bit but for the sign of zeros.
bool IsSymmetric(const AnySparse& a);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ANALYSIS_H_
