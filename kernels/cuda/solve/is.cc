// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/solve/solvers.h"

#include <algorithm>

#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/method_costs.h"
#include "kernels/cuda/icm/section_sweeps.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr int64_t kSection = 64;  // fewer if shared memory is too small
// Time of a section's successive sweeps per unknown. Measured on an H100 for n = 256 to 32768 and 1
// to 64 right-hand sides, on random factors. There, a section takes as many sweeps as it has rows.
constexpr double kSecondsPerUnknown = 3.9e-6;

// op(T) X = B for one triangle T of the factor. `op` is kNone or kTranspose. X overwrites b.
template <class T>
class TriangleJob {
 public:
  TriangleJob(Context& context, const FactorView& factor, bool lower, Op op, double tolerance,
              const MatrixView<T>& b)
      : context_(context),
        lu_(factor.lu.As<const T>()),
        op_(op),
        unit_(lower == (factor.unit_diagonal == UnitDiagonal::kL)),
        forward_(lower == (op == Op::kNone)),
        b_(b),
        section_(std::min(kSection, MaxSweptUnknowns(kDTypeOf<T>, context.core().limits()))) {
    run_.tolerances.relative = tolerance;
  }

  absl::Status Run() const {
    const int64_t n = lu_.rows;
    const int64_t sections = (n + section_ - 1) / section_;
    for (int64_t s = 0; s < sections; ++s) {
      const int64_t begin = (forward_ ? s : sections - 1 - s) * section_;
      const int64_t end = std::min(begin + section_, n);
      CROUT_RETURN_IF_ERROR(Sweep(begin, end));
      CROUT_RETURN_IF_ERROR(forward_ ? Subtract(end, n, begin, end)
                                     : Subtract(0, begin, begin, end));
    }
    return absl::OkStatus();
  }

 private:
  // Solves for the section's unknowns, in the order of their dependence.
  absl::Status Sweep(int64_t begin, int64_t end) const {
    const int64_t first = forward_ ? begin : end - 1;
    const int64_t sign = forward_ ? 1 : -1;
    SectionSweeps<T> work;
    work.unknowns = end - begin;
    work.columns = b_.cols;
    work.m = &lu_(first, first);
    work.m_row = sign * (op_ == Op::kNone ? 1 : lu_.ld);
    work.m_col = sign * (op_ == Op::kNone ? lu_.ld : 1);
    work.unit = unit_;
    work.b = work.x = &b_(first, 0);
    work.b_row = work.x_row = sign;
    work.b_col = work.x_col = b_.ld;
    work.scaled = true;
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchSectionSweeps(run_, work, context_.core().limits(), context_.stream()));
    return absl::OkStatus();
  }

  // b[r0:r1] -= op(T)[r0:r1, k0:k1] x[k0:k1]
  absl::Status Subtract(int64_t r0, int64_t r1, int64_t k0, int64_t k1) const {
    if (r0 == r1) return absl::OkStatus();
    const bool plain = op_ == Op::kNone;
    const MatrixView<const T> factor = {plain ? &lu_(r0, k0) : &lu_(k0, r0),
                                        plain ? r1 - r0 : k1 - k0, plain ? k1 - k0 : r1 - r0,
                                        lu_.ld};
    return SubtractProduct<T>(context_.cublas(), op_, factor, {&b_(k0, 0), k1 - k0, b_.cols, b_.ld},
                              {&b_(r0, 0), r1 - r0, b_.cols, b_.ld});
  }

  Context& context_;
  const MatrixView<const T> lu_;
  const Op op_;
  const bool unit_;
  const bool forward_;
  const MatrixView<T> b_;
  const int64_t section_;
  IcmRun run_;
};

}  // namespace

// Never predicts less than trsm: measurements with one right-hand side must not make `auto` choose
// the sweeps for many.
double CudaIs::PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const {
  const double sweeps =
      core_.Calibrated("is", dtype, n, kSecondsPerUnknown * static_cast<double>(n));
  return std::max(sweeps, core_.Calibrated("trsm", dtype, n, PredictTrsmSeconds(dtype, n, nrhs)));
}

absl::Status CudaIs::SolveTriangle(Context& context, const FactorView& factor, bool lower, Op op,
                                   double tolerance, const AnyMatrix& b) const {
  // A^H X = B is solved as A^T conj(X) = conj(B).
  const bool conjugate = op == Op::kConjugateTranspose && IsComplex(b.dtype);
  if (conjugate) CROUT_RETURN_IF_CUDA_ERROR(LaunchConjugate(b, context.stream()));
  CROUT_RETURN_IF_ERROR(DispatchDevice(b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Op transpose = op == Op::kNone ? op : Op::kTranspose;
    return TriangleJob<T>(context, factor, lower, transpose, tolerance, b.As<T>()).Run();
  }));
  if (conjugate) CROUT_RETURN_IF_CUDA_ERROR(LaunchConjugate(b, context.stream()));
  return absl::OkStatus();
}

}  // namespace crout::cuda
