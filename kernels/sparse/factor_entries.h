// L and U of a multifrontal factor, entry by entry: what a download sends.
#ifndef CROUT_KERNELS_SPARSE_FACTOR_ENTRIES_H_
#define CROUT_KERNELS_SPARSE_FACTOR_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"

namespace crout {

// Reads a factor in host memory, as MultifrontalLayout says, which outlives this. With
//   C(k, l) = r[rows[k]] A(rows[k], q_l) c[q_l],   q = analysis.column_order,
// where rows() is analysis.row_order with the interchanges of all fronts, C = L U. L's diagonal is
// 1 and not stored. Pivots that were perturbed make it another matrix's, near C.
template <class T>
class FactorEntries {
 public:
  FactorEntries(const Analysis& analysis, const std::byte* block)
      : analysis_(analysis), block_(block), place_(analysis.n), rows_(analysis.n) {
    for (int64_t f = 0; f < analysis.fronts(); ++f) Interchange(f);
  }

  // A's row at each position, once rows were interchanged.
  const std::vector<int32_t>& rows() const { return rows_; }

  // Of L, below the diagonal, and of U: sum of d1 (d1 - 1) / 2 + d1 d2, and d1 more.
  int64_t lower_entries() const { return (analysis_.factor_entries() - analysis_.n) / 2; }
  int64_t upper_entries() const { return (analysis_.factor_entries() + analysis_.n) / 2; }

  // visit(i, j, value) for the entries of L, below the diagonal, by columns j ascending; rows i in
  // no order. Zeros that the fronts store are among them.
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

  // The same for U, its diagonal included, by rows i ascending, and columns j within.
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
  // place_: where the row of each position came to be.
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
