// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/updated_inverse.h"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/execution_context.h"
#include "kernels/scalar.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

AnyMatrix Columns(AnyMatrix m, int64_t first, int64_t count) {
  m.data += first * m.ld * static_cast<int64_t>(SizeOf(m.dtype));
  m.cols = count;
  return m;
}

AnyMatrix Rows(AnyMatrix m, int64_t first, int64_t count) {
  m.data += first * static_cast<int64_t>(SizeOf(m.dtype));
  m.rows = count;
  return m;
}

// a := (I + a)^-1 for a k x k column-major matrix, by Gauss-Jordan elimination with partial
// pivoting. Returns false, with a = 0, if I + a is singular.
template <class T>
bool InvertWithIdentity(std::vector<T>& a, int64_t k) {
  std::vector<T> inverse(a.size());
  const auto at = [k](std::vector<T>& m, int64_t i, int64_t j) -> T& { return m[i + j * k]; };
  for (int64_t i = 0; i < k; ++i) {
    at(a, i, i) += T(1);
    at(inverse, i, i) = T(1);
  }
  for (int64_t c = 0; c < k; ++c) {
    int64_t pivot = c;
    for (int64_t i = c + 1; i < k; ++i) {
      if (Abs1(at(a, i, c)) > Abs1(at(a, pivot, c))) pivot = i;
    }
    const T by = T(1) / at(a, pivot, c);
    for (int64_t j = 0; j < k; ++j) {
      std::swap(at(a, c, j), at(a, pivot, j));
      std::swap(at(inverse, c, j), at(inverse, pivot, j));
      at(a, c, j) *= by;
      at(inverse, c, j) *= by;
    }
    for (int64_t i = 0; i < k; ++i) {
      if (i == c) continue;
      const T factor = at(a, i, c);
      for (int64_t j = 0; j < k; ++j) {
        at(a, i, j) -= factor * at(a, c, j);
        at(inverse, i, j) -= factor * at(inverse, c, j);
      }
    }
  }
  // A zero or NaN pivot makes the result non-finite.
  const bool regular = std::all_of(inverse.begin(), inverse.end(), IsFinite<T>);
  if (!regular) std::fill(inverse.begin(), inverse.end(), T{});
  a = std::move(inverse);
  return regular;
}

template <class T>
absl::StatusOr<bool> InvertCore(ExecutionContext& context, const AnyMatrix& core) {
  std::vector<T> values(core.rows * core.cols);
  const size_t bytes = values.size() * sizeof(T);
  SyncOnExit sync(context);  // `values` may be in use, also on an error
  CROUT_RETURN_IF_ERROR(context.ops().CopyToHost(core.data, values.data(), bytes));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  const bool regular = InvertWithIdentity(values, core.rows);
  CROUT_RETURN_IF_ERROR(context.ops().CopyToDevice(values.data(), core.data, bytes));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  return regular;
}

}  // namespace

absl::StatusOr<size_t> LowRankUpdate::Bytes(int64_t n, int64_t rank, DType vector_type) {
  CROUT_ASSIGN_OR_RETURN(const size_t side, MatrixBytes(n, rank, vector_type));
  CROUT_ASSIGN_OR_RETURN(const size_t core, MatrixBytes(rank, rank, vector_type));
  return ByteSum().Add(side).Add(side).Add(core).total();
}

LowRankUpdate::LowRankUpdate(std::byte* block, int64_t n, int64_t rank, DType vector_type) {
  const int64_t side = n * rank * static_cast<int64_t>(SizeOf(vector_type));
  z = {block, vector_type, n, rank, n};
  v = {block + side, vector_type, rank, n, rank};
  core = {block + 2 * side, vector_type, rank, rank, rank};
}

absl::Status ExtendUpdate(MatrixOps& ops, const LowRankUpdate* before, const AnyMatrix& u,
                          const AnyMatrix& v, const LowRankUpdate& update) {
  const int64_t known = update.rank() - u.cols;
  if (before != nullptr) {
    CROUT_RETURN_IF_ERROR(ops.CopyScaled(before->z, nullptr, nullptr, Columns(update.z, 0, known)));
    CROUT_RETURN_IF_ERROR(ops.CopyScaled(before->v, nullptr, nullptr, Rows(update.v, 0, known)));
  }
  CROUT_RETURN_IF_ERROR(ops.CopyScaled(u, nullptr, nullptr, Columns(update.z, known, u.cols)));
  return ops.CopyScaled(v, nullptr, nullptr, Rows(update.v, known, v.rows));
}

absl::StatusOr<bool> CompleteUpdate(ExecutionContext& context, InverseOperator& inverse,
                                    int64_t added, const LowRankUpdate& update) {
  const AnyMatrix u = Columns(update.z, update.rank() - added, added);
  CROUT_RETURN_IF_ERROR(inverse.Apply(Op::kNone, u, u));
  CROUT_RETURN_IF_ERROR(context.ops().Multiply(1, Op::kNone, update.v, update.z, 0, update.core));
  if (IsComplex(update.core.dtype)) return InvertCore<std::complex<double>>(context, update.core);
  return InvertCore<double>(context, update.core);
}

absl::StatusOr<size_t> UpdatedInverse::WorkBytes(int64_t rank, int64_t nrhs, DType vector_type) {
  CROUT_ASSIGN_OR_RETURN(const size_t half, MatrixBytes(rank, nrhs, vector_type));
  return ByteSum().Add(half).Add(half).total();
}

absl::Status UpdatedInverse::Apply(Op op, const AnyMatrix& in, const AnyMatrix& out) {
  MatrixOps& ops = context_.ops();
  const int64_t k = update_.rank();
  const AnyMatrix first{work_, vector_type(), k, in.cols, k};
  AnyMatrix second = first;
  second.data += k * in.cols * static_cast<int64_t>(SizeOf(second.dtype));
  if (op == Op::kNone) {
    CROUT_RETURN_IF_ERROR(inverse_.Apply(op, in, out));
    CROUT_RETURN_IF_ERROR(ops.Multiply(1, op, update_.v, out, 0, first));
    CROUT_RETURN_IF_ERROR(ops.Multiply(1, op, update_.core, first, 0, second));
    return ops.Multiply(-1, op, update_.z, second, 1, out);
  }
  // op(M - Z C^-1 V^T M) = op(M) (I - op(V^T) op(C^-1) op(Z)).
  CROUT_RETURN_IF_ERROR(ops.Multiply(1, op, update_.z, in, 0, first));
  CROUT_RETURN_IF_ERROR(ops.Multiply(1, op, update_.core, first, 0, second));
  if (in.data != out.data) CROUT_RETURN_IF_ERROR(ops.CopyScaled(in, nullptr, nullptr, out));
  CROUT_RETURN_IF_ERROR(ops.Multiply(-1, op, update_.v, second, 1, out));
  return inverse_.Apply(op, out, out);
}

}  // namespace crout
