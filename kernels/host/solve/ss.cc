#include "kernels/host/device/cost_model.h"
#include "kernels/host/ops/interchanges.h"
#include "kernels/host/solve/conjugate.h"
#include "kernels/host/solve/solvers.h"

namespace crout::host {
namespace {

// One right-hand side at a time; every loop over a column of the factor has unit stride.
template <class T>
class Substitution {
 public:
  Substitution(const MatrixView<T>& lu, bool unit_in_l) : lu_(lu), unit_in_l_(unit_in_l) {}

  void SolveL(T* x) const {
    for (int64_t k = 0; k < lu_.rows; ++k) {
      if (!unit_in_l_) x[k] /= lu_(k, k);
      const T xk = x[k];
      for (int64_t i = k + 1; i < lu_.rows; ++i) x[i] -= lu_(i, k) * xk;
    }
  }

  void SolveU(T* x) const {
    for (int64_t k = lu_.rows - 1; k >= 0; --k) {
      if (unit_in_l_) x[k] /= lu_(k, k);
      const T xk = x[k];
      for (int64_t i = 0; i < k; ++i) x[i] -= lu_(i, k) * xk;
    }
  }

  void SolveTransposedU(T* x) const {
    for (int64_t k = 0; k < lu_.rows; ++k) {
      T sum = x[k];
      for (int64_t i = 0; i < k; ++i) sum -= lu_(i, k) * x[i];
      x[k] = unit_in_l_ ? sum / lu_(k, k) : sum;
    }
  }

  void SolveTransposedL(T* x) const {
    for (int64_t k = lu_.rows - 1; k >= 0; --k) {
      T sum = x[k];
      for (int64_t i = k + 1; i < lu_.rows; ++i) sum -= lu_(i, k) * x[i];
      x[k] = unit_in_l_ ? sum : sum / lu_(k, k);
    }
  }

 private:
  const MatrixView<T> lu_;
  const bool unit_in_l_;
};

template <class T>
void SolveAll(const FactorView& factor, Op op, const MatrixView<T>& b) {
  if (b.rows == 0) return;  // with no data, that may be null
  const Substitution<T> substitution(factor.lu.As<T>(), factor.unit_diagonal == UnitDiagonal::kL);
  if (op == Op::kNone) ApplyInterchanges(factor.ipiv, InterchangeOrder::kForward, b);
  if (op == Op::kConjugateTranspose) Conjugate(b);
  for (int64_t j = 0; j < b.cols; ++j) {
    if (op == Op::kNone) {
      substitution.SolveL(&b(0, j));
      substitution.SolveU(&b(0, j));
    } else {
      substitution.SolveTransposedU(&b(0, j));
      substitution.SolveTransposedL(&b(0, j));
    }
  }
  if (op == Op::kConjugateTranspose) Conjugate(b);
  if (op != Op::kNone) ApplyInterchanges(factor.ipiv, InterchangeOrder::kBackward, b);
}

class HostSs final : public TriangularSolver {
 public:
  explicit HostSs(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "ss",
        .description = "sequential forward and backward substitution",
        .types = kAllTypes};
    return kTraits;
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    return 2 * kCallSeconds + FactorReadSeconds(dtype, n) +
           SolveFlops(n, nrhs) / (kReferenceFlopsPerCore * RateFactor(dtype));
  }
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, int64_t) const override { return 0; }

  absl::Status Solve(ExecutionContext&, const FactorView& factor, Op op, double, const AnyMatrix& b,
                     std::span<std::byte>) const override {
    executor_.Run(Width::kOneCore, [&](int) {
      DispatchDType(b.dtype,
                    [&](auto tag) { SolveAll(factor, op, b.As<typename decltype(tag)::type>()); });
    });
    return absl::OkStatus();
  }

 private:
  Executor& executor_;
};

}  // namespace

std::unique_ptr<TriangularSolver> MakeSs(Executor& executor) {
  return std::make_unique<HostSs>(executor);
}

}  // namespace crout::host
