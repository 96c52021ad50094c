// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/solve/solvers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/method_costs.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/cuda/ops/permute_rows.h"
#include "kernels/cuda/solve/block_product.h"
#include "kernels/cuda/solve/invert_diagonal.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// Measured on an H100: from these numbers of elements of a block on, cuBLAS is faster than one
// launch of BlockProduct. The limits are for up to 16 columns, and for more.
constexpr int64_t kFewColumns = 16;
constexpr int64_t kGemmElements = int64_t{1} << 26;
constexpr int64_t kGemmElementsOfMany = int64_t{1} << 20;

// Found by experiment (docs/decisions/0010). Up to condition number kAccurate, the inverses alone
// are about as accurate as substitution. Beyond the other limits, even the corrected result can be
// worse.
constexpr double kAccurate = 4;
constexpr double kMaxCondition64 = 1e12;
constexpr double kMaxCondition32 = 1e7;

double ConditionFor(Op op, const PreparationStats& preparation) {
  return op == Op::kNone ? preparation.condition : preparation.transposed_condition;
}

// Returns true if blocks of this condition number need the correction for X to meet the tolerance.
template <class T>
bool NeedsCorrection(double condition, double tolerance) {
  return condition > kAccurate && !(condition * UnitRoundoff(kDTypeOf<T>) <= tolerance);
}

// Rows of a diagonal block. Larger blocks take fewer steps but more memory, limited to half of the
// factor's from n = 1024 on and to a quarter from 4096 on. They also make the preparation longer,
// which should stay short compared with the factorization.
int64_t BlockOrder(DType dtype, int64_t n, const DeviceLimits& limits) {
  const int64_t order = n <= 512 ? 256 : n < 4096 ? 512 : kMaxInvertedOrder;
  return std::min({n, order, MaxInvertedOrder(dtype, limits)});
}

// Elements of the row permutation's memory, rounded up to an even number so that the following data
// are aligned for complex128.
int64_t PermutationLength(int64_t n) { return n + n % 2; }

// The data that Prepare wrote.
template <class T>
struct Prepared {
  // Only Prepare writes to this memory.
  Prepared(const FactorView& factor, const DeviceLimits& limits)
      : Prepared(const_cast<std::byte*>(factor.prepared), factor.lu.rows, limits) {}
  Prepared(std::byte* data, int64_t n, const DeviceLimits& limits)
      : permutation(reinterpret_cast<int64_t*>(data)),
        inverse{reinterpret_cast<T*>(data + PermutationLength(n) * sizeof(int64_t)), n,
                BlockOrder(kDTypeOf<T>, n, limits), n} {}

  int64_t* permutation;  // 0-based: row permutation[i] of A is row i of L U
  MatrixView<T> inverse;
};

// A solve with one triangle of the factor: x := op(T)^-1 b; overwrites b.
template <class T>
class TriangleJob {
 public:
  TriangleJob(Context& context, const FactorView& factor, bool lower, Op op, double tolerance,
              const MatrixView<T>& b, const MatrixView<T>& x)
      : context_(context),
        lu_(factor.lu.As<const T>()),
        inverse_(Prepared<T>(factor, context.core().limits()).inverse),
        corrected_(NeedsCorrection<T>(ConditionFor(op, factor.preparation), tolerance)),
        op_(op),
        plain_(op == Op::kNone),
        unit_(lower == (factor.unit_diagonal == UnitDiagonal::kL)),
        forward_(lower == plain_),
        early_(context.core().limits().dependent_launch ? ProductStart::kEarly
                                                        : ProductStart::kAfterAll),
        b_(b),
        x_(x) {}

  absl::Status Run() { return SolveRange(0, lu_.rows); }

 private:
  // Solves for unknowns [begin, end), from which all earlier unknowns are already subtracted.
  // `begin` is a multiple of the block order.
  absl::Status SolveRange(int64_t begin, int64_t end) {
    const int64_t nb = inverse_.cols;
    if (end - begin <= nb) return SolveBlock(begin, end);
    const int64_t blocks = (end - begin + nb - 1) / nb;
    const int64_t middle = begin + (blocks + 1) / 2 * nb;
    if (forward_) {
      CROUT_RETURN_IF_ERROR(SolveRange(begin, middle));
      CROUT_RETURN_IF_ERROR(Subtract(middle, end, begin, middle));
      return SolveRange(middle, end);
    }
    CROUT_RETURN_IF_ERROR(SolveRange(middle, end));
    CROUT_RETURN_IF_ERROR(Subtract(begin, middle, middle, end));
    return SolveRange(begin, middle);
  }

  absl::Status SolveBlock(int64_t begin, int64_t end) {
    const MatrixView<T> b = Rows(b_, begin, end);
    const MatrixView<T> x = Rows(x_, begin, end);
    BlockProduct<T> invert = Block(&inverse_(begin, 0), inverse_.ld);
    BlockProduct<T> multiply = Block(&lu_(begin, begin), lu_.ld);
    invert.shape = multiply.shape = forward_ ? BlockShape::kLower : BlockShape::kUpper;
    invert.unit = multiply.unit = unit_;
    CROUT_RETURN_IF_ERROR(Multiply(invert, b, {}, x));
    if (!corrected_) return absl::OkStatus();
    multiply.subtract = true;
    CROUT_RETURN_IF_ERROR(Multiply(multiply, x, b, b));
    return Multiply(invert, b, x, x);
  }

  // b[r0:r1] -= op(T)[r0:r1, k0:k1] x[k0:k1]
  absl::Status Subtract(int64_t r0, int64_t r1, int64_t k0, int64_t k1) {
    const MatrixView<T> b = Rows(b_, r0, r1);
    const MatrixView<T> x = Rows(x_, k0, k1);
    const T* a = plain_ ? &lu_(r0, k0) : &lu_(k0, r0);
    if (b.rows * x.rows < (b.cols <= kFewColumns ? kGemmElements : kGemmElementsOfMany)) {
      BlockProduct<T> product = Block(a, lu_.ld);
      product.subtract = true;
      return Multiply(product, x, b, b);
    }
    start_ = early_;
    return SubtractProduct<T>(context_.cublas(), op_,
                              {a, plain_ ? b.rows : x.rows, plain_ ? x.rows : b.rows, lu_.ld},
                              {x.data, x.rows, x.cols, x.ld}, b);
  }

  static MatrixView<T> Rows(const MatrixView<T>& m, int64_t begin, int64_t end) {
    return {&m(begin, 0), end - begin, m.cols, m.ld};
  }
  BlockProduct<T> Block(const T* a, int64_t ld) const {
    BlockProduct<T> product;
    product.a = a;
    product.a_row = plain_ ? 1 : ld;
    product.a_col = plain_ ? ld : 1;
    product.conjugate = op_ == Op::kConjugateTranspose;
    return product;
  }
  absl::Status Multiply(BlockProduct<T> product, const MatrixView<T>& x, const MatrixView<T>& c,
                        const MatrixView<T>& out) {
    product.x = {x.data, x.rows, x.cols, x.ld};
    product.c = {c.data, c.rows, c.cols, c.ld};
    product.out = out;
    CROUT_RETURN_IF_CUDA_ERROR(LaunchBlockProduct(product, start_, context_.stream()));
    start_ = early_;
    return absl::OkStatus();
  }

  Context& context_;
  const MatrixView<const T> lu_;
  const MatrixView<T> inverse_;
  const bool corrected_;
  const Op op_;
  const bool plain_;
  const bool unit_;
  const bool forward_;
  const ProductStart early_;
  const MatrixView<T> b_;
  const MatrixView<T> x_;
  // Earlier work on the stream may still be writing the factor.
  ProductStart start_ = ProductStart::kAfterAll;
};

template <class T>
absl::Status SolveWith(Context& context, const FactorView& factor, Op op, double tolerance,
                       const AnyMatrix& b, std::byte* workspace) {
  const MatrixView<T> x = b.As<T>();
  const AnyMatrix first = {workspace, b.dtype, b.rows, b.cols, b.rows};
  AnyMatrix second = first;
  second.data += b.rows * b.cols * sizeof(T);
  const int64_t* permutation = Prepared<T>(factor, context.core().limits()).permutation;
  if (op == Op::kNone) {
    CROUT_RETURN_IF_CUDA_ERROR(LaunchPermuteRows(b, permutation, false, first, context.stream()));
    CROUT_RETURN_IF_ERROR(
        TriangleJob<T>(context, factor, true, op, tolerance, first.As<T>(), second.As<T>()).Run());
    return TriangleJob<T>(context, factor, false, op, tolerance, second.As<T>(), x).Run();
  }
  CROUT_RETURN_IF_ERROR(
      TriangleJob<T>(context, factor, false, op, tolerance, x, first.As<T>()).Run());
  CROUT_RETURN_IF_ERROR(
      TriangleJob<T>(context, factor, true, op, tolerance, first.As<T>(), second.As<T>()).Run());
  CROUT_RETURN_IF_CUDA_ERROR(LaunchPermuteRows(second, permutation, true, b, context.stream()));
  return absl::OkStatus();
}

template <class T>
absl::Status PrepareWith(Context& context, const FactorView& factor, std::byte* memory) {
  const MatrixView<const T> lu = factor.lu.As<const T>();
  const DeviceLimits& limits = context.core().limits();
  const Prepared<T> prepared(memory, lu.rows, limits);
  const MatrixView<T>& inverse = prepared.inverse;
  const cudaStream_t stream = context.stream();
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchTracePermutation(factor.ipiv, lu.rows, prepared.permutation, stream));
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchInvertDiagonal(lu, factor.unit_diagonal, inverse, limits, stream));
  CROUT_RETURN_IF_CUDA_ERROR(LaunchBlockConditions<T>(
      lu, factor.unit_diagonal, {inverse.data, inverse.rows, inverse.cols, inverse.ld},
      context.scratch(), &context.report().preparation, stream));
  return absl::OkStatus();
}

absl::Status CheckMemory(const char* what, size_t needed, size_t given) {
  if (given >= needed) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("crout_solve needs ", needed, " bytes of ", what, ", got ", given));
}

}  // namespace

double CroutSolve::PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const {
  return core_.Calibrated("crout_solve", dtype, n, PredictCroutSolveSeconds(dtype, n, nrhs));
}

absl::StatusOr<size_t> CroutSolve::WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const {
  CROUT_ASSIGN_OR_RETURN(const size_t copy, MatrixBytes(n, nrhs, dtype));
  return ByteSum().Add(copy).Add(copy).total();
}

absl::StatusOr<size_t> CroutSolve::PreparedBytes(DType dtype, int64_t n) const {
  CROUT_ASSIGN_OR_RETURN(const size_t permutation,
                         MatrixBytes(PermutationLength(n), 1, DType::kFloat64));
  CROUT_ASSIGN_OR_RETURN(const size_t inverse,
                         MatrixBytes(n, BlockOrder(dtype, n, core_.limits()), dtype));
  return ByteSum().Add(permutation).Add(inverse).total();
}

absl::Status CroutSolve::Prepare(ExecutionContext& context, const FactorView& factor,
                                 std::span<std::byte> prepared) const {
  const int64_t n = factor.lu.rows;
  if (n == 0) return absl::OkStatus();
  Context& cuda = Context::From(context);
  CROUT_ASSIGN_OR_RETURN(const size_t needed, PreparedBytes(factor.lu.dtype, n));
  CROUT_RETURN_IF_ERROR(CheckMemory("memory for the prepared factor", needed, prepared.size()));
  CROUT_RETURN_IF_ERROR(cuda.core().MakeCurrent());
  return cuda.core().Observe(DispatchDevice(factor.lu.dtype, [&](auto tag) {
    return PrepareWith<typename decltype(tag)::type>(cuda, factor, prepared.data());
  }));
}

Reliability CroutSolve::AssessPreparation(const PreparationStats& preparation, DType dtype,
                                          int64_t n, Op op) const {
  const double condition = ConditionFor(op, preparation);
  // Also false for NaN.
  if (!(condition < (RealOf(dtype) == DType::kFloat64 ? kMaxCondition64 : kMaxCondition32)))
    return Reliability::kNone;
  // One correction reduces an error of kappa u to its square.
  const double left = condition * UnitRoundoff(dtype);
  return left * left <= AcceptedBackwardError(dtype, n) ? Reliability::kFull
                                                        : Reliability::kMeasured;
}

absl::Status CroutSolve::Solve(ExecutionContext& context, const FactorView& factor, Op op,
                               double tolerance, const AnyMatrix& b,
                               std::span<std::byte> workspace) const {
  if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
  if (factor.prepared == nullptr) {
    return absl::FailedPreconditionError(
        "the factor was not prepared for crout_solve. Use another solver, or factor the matrix "
        "again");
  }
  Context& cuda = Context::From(context);
  CROUT_ASSIGN_OR_RETURN(const size_t needed, WorkspaceBytes(b.dtype, b.rows, b.cols));
  CROUT_RETURN_IF_ERROR(CheckMemory("workspace", needed, workspace.size()));
  CROUT_RETURN_IF_ERROR(cuda.core().MakeCurrent());
  return cuda.core().Observe(DispatchDevice(b.dtype, [&](auto tag) {
    return SolveWith<typename decltype(tag)::type>(cuda, factor, op, tolerance, b,
                                                   workspace.data());
  }));
}

}  // namespace crout::cuda
