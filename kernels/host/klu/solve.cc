// SPDX-License-Identifier: Apache-2.0

// Solves: scaling, KLU's substitution, scaling.
#include <klu.h>

#include <complex>

#include "absl/strings/str_cat.h"
#include "kernels/host/klu/klu.h"
#include "kernels/host/klu/klu_factor.h"

namespace crout::host {
namespace {

// Right-hand sides that KLU solves together.
constexpr size_t kRhsPerSolve = 4;

// Multiplies the rows of b by `scale`, unless it is empty.
template <class T>
void ScaleRows(std::span<const double> scale, const MatrixView<T>& b) {
  if (scale.empty()) return;
  for (int64_t j = 0; j < b.cols; ++j) {
    for (int64_t i = 0; i < b.rows; ++i) b(i, j) *= scale[i];
  }
}

template <class T>
int Substitute(KluOrder& order, KluNumeric& numeric, Op op, const MatrixView<T>& b) {
  klu_common common;
  klu_defaults(&common);
  auto* const values = reinterpret_cast<double*>(b.data);
  const auto ld = static_cast<int>(b.ld);
  const auto nrhs = static_cast<int>(b.cols);
  klu_symbolic* const symbolic = order.symbolic();
  if constexpr (kIsComplex<T>) {
    if (op == Op::kNone) {
      klu_z_solve(symbolic, numeric.numeric(), ld, nrhs, values, &common);
    } else {
      const int conjugate = op == Op::kConjugateTranspose ? 1 : 0;
      klu_z_tsolve(symbolic, numeric.numeric(), ld, nrhs, values, conjugate, &common);
    }
  } else if (op == Op::kNone) {
    klu_solve(symbolic, numeric.numeric(), ld, nrhs, values, &common);
  } else {
    klu_tsolve(symbolic, numeric.numeric(), ld, nrhs, values, &common);
  }
  return common.status;
}

template <class T>
absl::Status Solve(const Analysis& analysis, std::span<const std::byte> factor, Op op,
                   const MatrixView<T>& b, std::byte* workspace) {
  KluNumeric numeric(factor, workspace);
  if (!numeric.exists())
    return absl::FailedPreconditionError("the matrix is singular: klu has no factor");
  KluOrder order(analysis);
  const bool transposed = op != Op::kNone;
  ScaleRows<T>(transposed ? analysis.column_scale : analysis.row_scale, b);
  const int status = Substitute(order, numeric, op, b);
  if (status != KLU_OK) {
    return absl::InternalError(absl::StrCat("klu solve failed with status ", status));
  }
  ScaleRows<T>(transposed ? analysis.row_scale : analysis.column_scale, b);
  return absl::OkStatus();
}

}  // namespace

size_t KluSolveWorkspaceBytes(const Analysis& analysis, DType dtype) {
  return kRhsPerSolve * static_cast<size_t>(analysis.n) * SizeOf(dtype);
}

absl::Status SolveKlu(const Analysis& analysis, std::span<const std::byte> factor, Op op,
                      const AnyMatrix& b, std::span<std::byte> workspace) {
  if (b.rows != analysis.n || analysis.unmatched_row >= 0 || analysis.kept > 0) {
    return absl::InvalidArgumentError("the right-hand side does not match the factor");
  }
  if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
  return IsComplex(b.dtype)
             ? Solve(analysis, factor, op, b.As<std::complex<double>>(), workspace.data())
             : Solve(analysis, factor, op, b.As<double>(), workspace.data());
}

}  // namespace crout::host
