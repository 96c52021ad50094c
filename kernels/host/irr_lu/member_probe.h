// Growth and quality of a member's factors.
#ifndef CROUT_KERNELS_HOST_IRR_LU_MEMBER_PROBE_H_
#define CROUT_KERNELS_HOST_IRR_LU_MEMBER_PROBE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/irregular_batch.h"
#include "kernels/scalar.h"

namespace crout::host {

// The probe of numerics/factor_probe.h, of matrices of any shape, one after the other in the same
// memory: Start before the factorization of one, Finish after it. L has the unit diagonal. Used by
// one thread at a time.
template <class T>
class MemberProbe {
 public:
  // Bytes of `work` for the members of such a batch.
  static constexpr size_t WorkBytes(const BatchExtent& extent) {
    return sizeof(double) * extent.max_rows +
           2 * sizeof(double) * (size_t{0} + extent.max_cols + extent.max_diagonal);
  }

  // `work` is aligned for doubles.
  MemberProbe(const BatchExtent& extent, std::byte* work)
      : products_(reinterpret_cast<Wide*>(work)),
        lower_(products_ + extent.max_cols),
        weights_(reinterpret_cast<double*>(lower_ + extent.max_diagonal)) {}

  // Reads A, which is not empty.
  void Start(const MatrixView<T>& a);

  double max_abs() const { return max_abs_; }  // of A

  struct Figures {
    double pivot_growth;
    double quality;
    double pivot_condition;
  };
  // As BatchFactors says. Of what became of A since, with ipiv[0, min(rows, cols)).
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
