// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/matching.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Assignment of least cost for c(i, j) = log(max_i |a(i, j)|) - log |a(i, j)| >= 0. The duals u, v
// satisfy c(i, j) - u_i - v_j >= 0, with equality if row i is matched with column j.
class Assignment {
 public:
  Assignment(const int64_t* column_start, const int32_t* row, std::vector<double> cost, int64_t n)
      : n_(n),
        start_(column_start),
        row_(row),
        cost_(std::move(cost)),
        u_(n, kInfinity),
        v_(n),
        column_of_(n, -1),
        entry_of_(n, -1),
        entry_of_column_(n, -1),
        distance_(n, kInfinity),
        reached_by_(n) {
    heap_.reserve(cost_.size());  // An augmentation pushes each entry at most once.
  }

  absl::Status Run(StopRequested stop) {
    StartDuals();
    StopCounter counter(stop);
    for (int64_t j = 0; j < n_; ++j) TakeFree(j);
    for (int64_t j = 0; j < n_; ++j) CROUT_RETURN_IF_ERROR(MatchByOneExchange(j, counter));
    for (int64_t j = 0; j < n_; ++j) {
      if (entry_of_column_[j] >= 0) continue;
      CROUT_RETURN_IF_ERROR(Augment(static_cast<int32_t>(j), counter));
    }
    return absl::OkStatus();
  }

  std::vector<int32_t>& column_of_row() { return column_of_; }
  const std::vector<double>& u() const { return u_; }
  // Dual of a matched column, computed from its matched entry. That entry then scales to 1 in spite
  // of rounding errors.
  double v(int64_t j) const {
    const int64_t e = entry_of_column_[j];
    return cost_[e] - u_[row_[e]];
  }

 private:
  using Reached = std::pair<double, int32_t>;  // distance, row

  double ReducedCost(int64_t e, int64_t j) const {
    return std::max(0.0, cost_[e] - u_[row_[e]] - v_[j]);
  }

  int64_t Entries(int64_t j) const { return start_[j + 1] - start_[j]; }

  void Match(int64_t e, int32_t j) {
    column_of_[row_[e]] = j;
    entry_of_[row_[e]] = e;
    entry_of_column_[j] = e;
  }

  void StartDuals() {
    for (int64_t e = 0; e < start_[n_]; ++e) u_[row_[e]] = std::min(u_[row_[e]], cost_[e]);
    for (double& u : u_) {
      if (u == kInfinity) u = 0;  // row without entries
    }
    for (int64_t j = 0; j < n_; ++j) {
      double least = kInfinity;
      for (int64_t e = start_[j]; e < start_[j + 1]; ++e) {
        least = std::min(least, cost_[e] - u_[row_[e]]);
      }
      v_[j] = least == kInfinity ? 0 : least;
    }
  }

  // Matches column j with a free row at no cost, if there is one. Prefers the diagonal entry, so
  // that a matrix whose diagonal is already best keeps it.
  void TakeFree(int64_t j) {
    int64_t found = -1;
    for (int64_t e = start_[j]; e < start_[j + 1]; ++e) {
      if (cost_[e] == kInfinity || ReducedCost(e, j) > 0 || column_of_[row_[e]] >= 0) continue;
      if (found < 0 || row_[e] == j) found = e;
    }
    if (found >= 0) Match(found, static_cast<int32_t>(j));
  }

  // Matches column j with a row whose current column can move to a free row, at no cost.
  absl::Status MatchByOneExchange(int64_t j, StopCounter& counter) {
    if (entry_of_column_[j] >= 0) return absl::OkStatus();
    for (int64_t e = start_[j]; e < start_[j + 1]; ++e) {
      if (cost_[e] == kInfinity || ReducedCost(e, j) > 0) continue;
      const int32_t other = column_of_[row_[e]];
      if (counter.Stops(Entries(other))) return counter.status();
      for (int64_t o = start_[other]; o < start_[other + 1]; ++o) {
        if (cost_[o] == kInfinity || ReducedCost(o, other) > 0 || column_of_[row_[o]] >= 0)
          continue;
        Match(o, other);
        Match(e, static_cast<int32_t>(j));
        return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  // Finds the shortest path (Dijkstra) from column `first` through matched rows to a free row. If
  // there is no path now, there will never be one.
  absl::Status Augment(int32_t first, StopCounter& counter) {
    double shortest = kInfinity;  // shortest path to a free row so far
    int32_t end = -1;
    double base = 0;
    int32_t j = first;
    while (true) {
      if (counter.Stops(1 + Entries(j))) return counter.status();
      for (int64_t e = start_[j]; e < start_[j + 1]; ++e) {
        if (cost_[e] == kInfinity) continue;
        const int32_t i = row_[e];
        const double d = base + ReducedCost(e, j);
        if (d >= shortest || d >= distance_[i]) continue;
        if (distance_[i] == kInfinity) touched_.push_back(i);
        distance_[i] = d;
        reached_by_[i] = {e, j};
        if (column_of_[i] < 0) {
          shortest = d;
          end = i;
        } else {
          heap_.push_back({-d, i});
          std::push_heap(heap_.begin(), heap_.end());
        }
      }
      int32_t next = -1;
      while (!heap_.empty() && next < 0) {
        const auto [d, i] = heap_.front();
        if (-d >= shortest) break;
        std::pop_heap(heap_.begin(), heap_.end());
        heap_.pop_back();
        if (-d == distance_[i]) next = i;  // otherwise a shorter path was found since
      }
      if (next < 0) break;
      done_.push_back(next);
      base = distance_[next];
      j = column_of_[next];
    }
    if (end >= 0) {
      for (const int32_t i : done_) u_[i] += distance_[i] - shortest;
      Exchange(first, end);
      for (const int32_t i : done_) v_[column_of_[i]] = cost_[entry_of_[i]] - u_[i];
      v_[column_of_[end]] = cost_[entry_of_[end]] - u_[end];
    }
    for (const int32_t i : touched_) distance_[i] = kInfinity;
    touched_.clear();
    done_.clear();
    heap_.clear();
    return absl::OkStatus();
  }

  void Exchange(int32_t first, int32_t end) {
    for (int32_t i = end;;) {
      const auto [e, j] = reached_by_[i];
      const int64_t before = entry_of_column_[j];
      Match(e, j);
      if (j == first) return;
      i = row_[before];
    }
  }

  const int64_t n_;
  const int64_t* const start_;
  const int32_t* const row_;
  const std::vector<double> cost_;  // by entry; Inf for zeros
  std::vector<double> u_, v_;
  std::vector<int32_t> column_of_;        // by row; -1: free
  std::vector<int64_t> entry_of_;         // by row
  std::vector<int64_t> entry_of_column_;  // by column; -1: free
  std::vector<double> distance_;          // by row
  struct Edge {
    int64_t entry;
    int32_t column;
  };
  std::vector<Edge> reached_by_;
  std::vector<int32_t> touched_, done_;
  std::vector<Reached> heap_;  // least distance first, then largest row
};

constexpr double kLargestExponent = 700;  // exponent of e for finite and normal float64

// exp(x), bounded to be finite and > 0.
double BoundedExp(double x) { return std::exp(std::clamp(x, -kLargestExponent, kLargestExponent)); }

// Returns the shift t for which row + t and column - t are within the bounds for all rows and
// columns: 0 if possible, otherwise the middle of the valid range. If no shift is valid, BoundedExp
// clamps the exponents.
double CommonShift(const std::vector<double>& row, const std::vector<double>& column) {
  if (row.empty()) return 0;
  const auto [row_least, row_most] = std::minmax_element(row.begin(), row.end());
  const auto [column_least, column_most] = std::minmax_element(column.begin(), column.end());
  const double least = std::max(-kLargestExponent - *row_least, *column_most - kLargestExponent);
  const double most = std::min(kLargestExponent - *row_most, kLargestExponent + *column_least);
  return least <= 0 && most >= 0 ? 0 : (least + most) / 2;
}

template <class T>
absl::StatusOr<Matching> Match(const SparseView<T>& a, StopRequested stop) {
  const int64_t nonzeros = a.column_start[a.n];
  std::vector<double> cost(nonzeros, kInfinity);
  std::vector<double> log_largest(a.n);
  for (int64_t j = 0; j < a.n; ++j) {
    double largest = 0;
    for (int64_t e = a.column_start[j]; e < a.column_start[j + 1]; ++e) {
      if (!IsFinite(a.value[e])) {
        return absl::InvalidArgumentError(
            absl::StrCat("entry (", a.row[e], ", ", j, "), 0-based, is not finite"));
      }
      largest = std::max(largest, Modulus(a.value[e]));
    }
    if (largest == 0) continue;
    log_largest[j] = std::log(largest);
    for (int64_t e = a.column_start[j]; e < a.column_start[j + 1]; ++e) {
      const double modulus = Modulus(a.value[e]);
      if (modulus > 0) cost[e] = std::max(0.0, log_largest[j] - std::log(modulus));
    }
  }
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  Assignment assignment(a.column_start, a.row, std::move(cost), a.n);
  CROUT_RETURN_IF_ERROR(assignment.Run(stop));
  Matching matching;
  matching.column_of_row = std::move(assignment.column_of_row());
  const auto unmatched =
      std::find(matching.column_of_row.begin(), matching.column_of_row.end(), -1);
  if (unmatched != matching.column_of_row.end()) {
    matching.unmatched_row = unmatched - matching.column_of_row.begin();
    return matching;
  }
  // Logarithms, converted below.
  matching.row_scale = assignment.u();
  matching.column_scale = std::move(log_largest);
  for (int64_t k = 0; k < a.n; ++k) {
    matching.column_scale[k] = assignment.v(k) - matching.column_scale[k];
  }
  const double shift = CommonShift(matching.row_scale, matching.column_scale);
  for (double& scale : matching.row_scale) scale = BoundedExp(scale + shift);
  for (double& scale : matching.column_scale) scale = BoundedExp(scale - shift);
  return matching;
}

}  // namespace

absl::StatusOr<Matching> MaximumProductMatching(const AnySparse& a, StopRequested stop) {
  return DispatchDType(a.dtype,
                       [&](auto tag) { return Match(a.As<typename decltype(tag)::type>(), stop); });
}

}  // namespace crout
