// SPDX-License-Identifier: Apache-2.0

// Entries of L and U of a multifrontal factor, for downloads.
#ifndef CROUT_KERNELS_SPARSE_FACTOR_ENTRIES_H_
#define CROUT_KERNELS_SPARSE_FACTOR_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"

namespace crout {

// Iterates over the entries of a factor in host memory, which must outlive this object
// (MultifrontalLayout). With q = analysis.column_order and
//   C(k, l) = r[rows[k]] A(rows[k], q_l) c[q_l]
// the factor satisfies C = L U. rows() is analysis.row_order after the interchanges of all fronts.
// The unit diagonal of L is not stored. If pivots were perturbed, L U is close to C but not equal.
template <class T>
class FactorEntries {
 public:
  FactorEntries(const Analysis& analysis, const std::byte* block)
      : analysis_(analysis), block_(block), place_(analysis.n), rows_(analysis.n) {
    for (int64_t f = 0; f < analysis.fronts(); ++f) Interchange(f);
  }

  // Row of A at each position, after the interchanges.
  const std::vector<int32_t>& rows() const { return rows_; }

  // Number of entries of L below its diagonal, and of U. Each front adds d1 (d1 - 1) / 2 + d1 d2 to
  // both, and d1 more to U.
  int64_t lower_entries() const { return (analysis_.factor_entries() - analysis_.n) / 2; }
  int64_t upper_entries() const { return (analysis_.factor_entries() + analysis_.n) / 2; }

  // Calls visit(i, j, value) for the entries of L below the diagonal, columns j ascending, rows in
  // any order. Includes zeros that the fronts store.
  template <class Visit>
  void VisitLower(const Visit& visit) const {
    for (int64_t f = 0; f < analysis_.fronts(); ++f) {
      const FrontFactor<const T> front = FrontAt<const T>(analysis_, block_, f);
      const int64_t first = analysis_.first_position[f];
      const int32_t* const border = analysis_.border.data() + analysis_.border_start[f];
      const int64_t d1 = front.panel.cols;
      for (int64_t j = 0; j < d1; ++j) {
        for (int64_t i = j + 1; i < d1; ++i) visit(first + i, first + j, front.panel(i, j));
        for (int64_t i = d1; i < front.panel.rows; ++i) {
          visit(int64_t{place_[border[i - d1]]}, first + j, front.panel(i, j));
        }
      }
    }
  }

  // Calls visit(i, j, value) for the entries of U, diagonal included: rows i ascending, columns j
  // ascending within a row.
  template <class Visit>
  void VisitUpper(const Visit& visit) const {
    for (int64_t f = 0; f < analysis_.fronts(); ++f) {
      const FrontFactor<const T> front = FrontAt<const T>(analysis_, block_, f);
      const int64_t first = analysis_.first_position[f];
      const int32_t* const border = analysis_.border.data() + analysis_.border_start[f];
      const int64_t d1 = front.panel.cols;
      for (int64_t i = 0; i < d1; ++i) {
        for (int64_t j = i; j < d1; ++j) visit(first + i, first + j, front.panel(i, j));
        for (int64_t j = 0; j < front.u12.cols; ++j) {
          visit(first + i, int64_t{border[j]}, front.u12(i, j));
        }
      }
    }
  }

 private:
  // Sets rows_, and sets place_ to the new position of the row of each position.
  void Interchange(int64_t f) {
    const FrontFactor<const T> front = FrontAt<const T>(analysis_, block_, f);
    const int32_t first = analysis_.first_position[f];
    const auto d1 = static_cast<int32_t>(front.panel.cols);
    std::vector<int32_t> from(d1);
    for (int32_t k = 0; k < d1; ++k) from[k] = k;
    for (int32_t k = 0; k < d1; ++k) std::swap(from[k], from[front.ipiv[k]]);
    for (int32_t k = 0; k < d1; ++k) {
      place_[first + from[k]] = first + k;
      rows_[first + k] = analysis_.row_order[first + from[k]];
    }
  }

  const Analysis& analysis_;
  const std::byte* const block_;
  std::vector<int32_t> place_;
  std::vector<int32_t> rows_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_FACTOR_ENTRIES_H_
