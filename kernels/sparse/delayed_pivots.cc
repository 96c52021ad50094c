// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/delayed_pivots.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/scalar.h"
#include "kernels/sparse/front_entries.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse/pivot_search.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// The search applies a stricter threshold than the check of the factorization, because it measures
// by |Re| + |Im| and the factorization may round to a smaller type.
constexpr double kMargin = 2;

// T is float64 or complex128, Source the type of A.
template <class T, class Source>
class DelaySearch {
 public:
  DelaySearch(const Analysis& analysis, const AnySparse& a, DType dtype,
              const AnalysisOptions& options)
      : analysis_(analysis),
        a_(a.As<Source>()),
        roundoff_(UnitRoundoff(dtype)),
        options_(options),
        of_row_(analysis.n),
        of_column_(analysis.n),
        row_place_(analysis.n),
        column_place_(analysis.n),
        least_(analysis.n),
        left_(analysis.fronts()) {
    out_.rows.reserve(analysis.n);
    out_.columns.reserve(analysis.n);
    out_.eliminated.resize(analysis.fronts());
  }

  absl::StatusOr<Regrouping> Run(StopRequested stop) {
    PlacePositions(analysis_, of_row_.data(), of_column_.data());
    FindMinPivots();
    for (int64_t f = 0; f < analysis_.fronts(); ++f) {
      CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
      if (analysis_.is_kept(f)) {
        KeepOrder(f);
      } else {
        CROUT_RETURN_IF_ERROR(DoFront(f));
      }
    }
    return std::move(out_);
  }

  // Size of this object, in bytes, without fronts.
  static size_t Bytes(const Analysis& analysis) {
    return analysis.n * (6 * sizeof(int32_t) + sizeof(double)) +
           analysis.fronts() * (sizeof(TrialFront<T>) + sizeof(int32_t));
  }

 private:
  T Scaled(int64_t entry, int32_t column) const {
    const T value = ToFloat64(a_.value[entry]);
    if (analysis_.row_scale.empty()) return value;
    return value * analysis_.row_scale[a_.row[entry]] * analysis_.column_scale[column];
  }

  // Sets least_ to the sizes below which the factorization perturbs pivots.
  void FindMinPivots() {
    const int64_t first_kept = analysis_.n - analysis_.kept;
    double largest = 0;
    for (int64_t k = 0; k < analysis_.n; ++k) {
      const int32_t j = analysis_.column_order[k];
      for (int64_t e = a_.column_start[j]; e < a_.column_start[j + 1]; ++e) {
        const double size = Abs1(Scaled(e, j));
        largest = std::max(largest, size);
        if (of_row_[a_.row[e]] < first_kept) least_[k] = std::max(least_[k], size);
      }
    }
    for (double& least : least_) {
      least =
          std::max(roundoff_ * (least > 0 ? least : largest), std::numeric_limits<double>::min());
    }
  }

  absl::Status DoFront(int64_t f) {
    TrialFront<T> front;
    CROUT_RETURN_IF_ERROR(Gather(f, front));
    AddEntries(f, front);
    for (int32_t c = analysis_.child_start[f]; c < analysis_.child_start[f + 1]; ++c) {
      AddChild(left_[analysis_.child[c]], front);
    }
    const double threshold = std::min(1.0, kMargin * analysis_.pivot_threshold);
    const PivotAcceptance rule{threshold, EliminatedRows(front), least_.data()};
    int64_t done = EliminateAcceptable(rule, front);
    if (IsLast(f)) done = front.candidates;
    TakePivots(f, front, done);
    if (!IsLast(f)) CROUT_RETURN_IF_ERROR(Leave(front, done, left_[f]));
    held_ -= FrontBytes(front.size());
    return absl::OkStatus();
  }

  // True if no front above f can eliminate delayed pivots.
  bool IsLast(int64_t f) const {
    const int32_t parent = analysis_.parent[f];
    return parent == -1 || analysis_.is_kept(parent);
  }

  // Sets the front's rows and columns, in the order: delayed by children, its own, its border. All
  // values are zero.
  absl::Status Gather(int64_t f, TrialFront<T>& front) {
    int64_t size = analysis_.eliminated(f) + analysis_.bordered(f);
    for (int32_t c = analysis_.child_start[f]; c < analysis_.child_start[f + 1]; ++c) {
      size += left_[analysis_.child[c]].candidates;
    }
    CROUT_RETURN_IF_ERROR(Hold(size));
    front.rows.reserve(size);
    front.columns.reserve(size);
    for (int32_t c = analysis_.child_start[f]; c < analysis_.child_start[f + 1]; ++c) {
      const TrialFront<T>& child = left_[analysis_.child[c]];
      front.rows.insert(front.rows.end(), child.rows.begin(),
                        child.rows.begin() + child.candidates);
      front.columns.insert(front.columns.end(), child.columns.begin(),
                           child.columns.begin() + child.candidates);
    }
    for (int32_t k = analysis_.first_position[f]; k < analysis_.first_position[f + 1]; ++k) {
      front.rows.push_back(k);
      front.columns.push_back(k);
    }
    front.candidates = front.size();
    const auto begin = analysis_.border.begin() + analysis_.border_start[f];
    const auto end = analysis_.border.begin() + analysis_.border_start[f + 1];
    front.rows.insert(front.rows.end(), begin, end);
    front.columns.insert(front.columns.end(), begin, end);
    for (int64_t i = 0; i < size; ++i) {
      row_place_[front.rows[i]] = static_cast<int32_t>(i);
      column_place_[front.columns[i]] = static_cast<int32_t>(i);
    }
    front.values.assign(size * size, T{0});
    return absl::OkStatus();
  }

  // Size of a front's values and positions, in bytes.
  static size_t FrontBytes(int64_t size) {
    return size * size * sizeof(T) + 2 * size * sizeof(int32_t);
  }

  // Accounts for one more front of this size.
  absl::Status Hold(int64_t size) {
    held_ += FrontBytes(size);
    if (held_ <= claimed_) return absl::OkStatus();
    claimed_ = held_ + held_ / 4;
    return options_.Claim(Bytes(analysis_) + claimed_);
  }

  // Adds the entries of A in the front's own rows or columns, except entries of descendants.
  void AddEntries(int64_t f, TrialFront<T>& front) const {
    const int32_t first = analysis_.first_position[f];
    const int32_t end = analysis_.first_position[f + 1];
    const int64_t size = front.size();
    const auto put = [&](int32_t row, int32_t column, int64_t entry, int32_t j) {
      front.values[row_place_[row] + column_place_[column] * size] = Scaled(entry, j);
    };
    for (int32_t k = first; k < end; ++k) {
      const int32_t j = analysis_.column_order[k];
      for (int64_t e = a_.column_start[j]; e < a_.column_start[j + 1]; ++e) {
        if (const int32_t row = of_row_[a_.row[e]]; row >= first) put(row, k, e, j);
      }
      const int32_t i = analysis_.row_order[k];
      for (int64_t e = a_.row_start[i]; e < a_.row_start[i + 1]; ++e) {
        const int32_t column = of_column_[a_.column[e]];
        if (column >= end) put(k, column, a_.position[e], a_.column[e]);
      }
    }
  }

  void AddChild(TrialFront<T>& child, TrialFront<T>& front) {
    const int64_t size = child.size();
    for (int64_t j = 0; j < size; ++j) {
      T* const to = front.values.data() + column_place_[child.columns[j]] * front.size();
      const T* const from = child.values.data() + j * size;
      for (int64_t i = 0; i < size; ++i) to[row_place_[child.rows[i]]] += from[i];
    }
    held_ -= FrontBytes(size);
    child = {};
  }

  // Number of rows that some front eliminates. Rows of kept unknowns are the last of the border.
  int64_t EliminatedRows(const TrialFront<T>& front) const {
    const int64_t first_kept = analysis_.n - analysis_.kept;
    return std::lower_bound(front.rows.begin() + front.candidates, front.rows.end(), first_kept) -
           front.rows.begin();
  }

  void TakePivots(int64_t f, const TrialFront<T>& front, int64_t done) {
    for (int64_t k = 0; k < done; ++k) {
      out_.rows.push_back(analysis_.row_order[front.rows[k]]);
      out_.columns.push_back(analysis_.column_order[front.columns[k]]);
    }
    out_.eliminated[f] = static_cast<int32_t>(done);
    entries_ += static_cast<double>(done) * static_cast<double>(2 * front.size() - done);
  }

  void KeepOrder(int64_t f) {
    for (int32_t k = analysis_.first_position[f]; k < analysis_.first_position[f + 1]; ++k) {
      out_.rows.push_back(analysis_.row_order[k]);
      out_.columns.push_back(analysis_.column_order[k]);
    }
    out_.eliminated[f] = static_cast<int32_t>(analysis_.eliminated(f));
  }

  // Stores the uneliminated part of the front in `left`.
  absl::Status Leave(TrialFront<T>& front, int64_t done, TrialFront<T>& left) {
    constexpr double kFewEntries = 1e6;
    if (entries_ >
        kMaxDelayedFill * static_cast<double>(analysis_.factor_entries()) + kFewEntries) {
      return absl::ResourceExhaustedError("delayed pivots cause more fill-in than the limit");
    }
    const int64_t size = front.size();
    const int64_t rest = size - done;
    CROUT_RETURN_IF_ERROR(Hold(rest));
    left.candidates = front.candidates - done;
    left.rows.assign(front.rows.begin() + done, front.rows.end());
    left.columns.assign(front.columns.begin() + done, front.columns.end());
    left.values.resize(rest * rest);
    for (int64_t j = 0; j < rest; ++j) {
      std::copy_n(front.values.data() + done + (done + j) * size, rest,
                  left.values.data() + j * rest);
    }
    return absl::OkStatus();
  }

  const Analysis& analysis_;
  const SparseView<Source> a_;
  const double roundoff_;
  const AnalysisOptions& options_;
  std::vector<int32_t> of_row_, of_column_;        // positions by A's indices
  std::vector<int32_t> row_place_, column_place_;  // places in the front, by position
  std::vector<double> least_;                      // least pivot size, by column position
  std::vector<TrialFront<T>> left_;  // uneliminated parts by front, until the parent has added them
  Regrouping out_;
  size_t held_ = 0;     // bytes of fronts
  size_t claimed_ = 0;  // bytes of fronts claimed
  double entries_ = 0;  // entries of the factor so far
};

}  // namespace

absl::StatusOr<Analysis> DelayPivots(const Analysis& analysis, const AnySparse& a, DType dtype,
                                     const AnalysisOptions& options, StopRequested stop) {
  CROUT_RETURN_IF_ERROR(CheckAnalysed(analysis, a, stop));
  absl::StatusOr<Regrouping> found = absl::InternalError("");
  CROUT_RETURN_IF_ERROR(
      options.Claim(DelaySearch<std::complex<double>, std::complex<double>>::Bytes(analysis)));
  DispatchDType(a.dtype, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    found = DelaySearch<WideType<Source>, Source>(analysis, a, dtype, options).Run(stop);
  });
  CROUT_RETURN_IF_ERROR(found.status());
  CROUT_ASSIGN_OR_RETURN(Analysis delayed, Regroup(analysis, a, *std::move(found), options, stop));
  delayed.delayed = true;
  return delayed;
}

}  // namespace crout
