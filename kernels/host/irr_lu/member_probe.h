// SPDX-License-Identifier: Apache-2.0

// Pivot growth and quality of a batch member's factors.
#ifndef CROUT_KERNELS_HOST_IRR_LU_MEMBER_PROBE_H_
#define CROUT_KERNELS_HOST_IRR_LU_MEMBER_PROBE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/irregular_batch.h"
#include "kernels/scalar.h"

namespace crout::host {

// The probe of numerics/factor_probe.h for matrices of any shape. One object probes any number of
// matrices in turn with the same memory: call Start() before a factorization and Finish() after it.
// L has the unit diagonal. Not thread-safe.
template <class T>
class MemberProbe {
 public:
  // Size of `work`, in bytes, for the members of a batch of this extent.
  static constexpr size_t WorkBytes(const BatchExtent& extent) {
    return sizeof(double) * extent.max_rows +
           2 * sizeof(double) * (size_t{0} + extent.max_cols + extent.max_diagonal);
  }

  // `work` is aligned for double.
  MemberProbe(const BatchExtent& extent, std::byte* work)
      : products_(reinterpret_cast<Wide*>(work)),
        lower_(products_ + extent.max_cols),
        weights_(reinterpret_cast<double*>(lower_ + extent.max_diagonal)) {}

  // Reads A, which must not be empty.
  void Start(const MatrixView<T>& a);

  double max_abs() const { return max_abs_; }  // largest |a_ij|

  struct Figures {
    double pivot_growth;
    double quality;
    double pivot_condition;
  };
  // Returns the figures that BatchFactors defines. `lu` holds the factors of the matrix that
  // Start() read; ipiv has min(rows, cols) elements.
  Figures Finish(const MatrixView<T>& lu, const int64_t* ipiv);

 private:
  using Wide = WideType<T>;

  Wide* const products_;   // z^T A
  Wide* const lower_;      // (P z)^T L
  double* const weights_;  // z
  double max_abs_ = 0;
  double norm_one_ = 0;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_MEMBER_PROBE_H_
