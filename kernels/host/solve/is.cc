// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/parallel_for.h"
#include "kernels/host/methods.h"
#include "kernels/host/solve/substitution.h"
#include "kernels/icm/pivot_rule.h"
#include "kernels/stop_requested.h"
#include "kernels/util/checked_math.h"

namespace crout::host {
namespace {

// One triangle of a factor, or its transpose, with rows in the order of substitution: row i depends
// only on the rows before it.
template <class T>
class Triangle {
 public:
  Triangle(const MatrixView<T>& lu, bool lower, bool transposed, bool unit)
      : lu_(lu), transposed_(transposed), forward_(lower != transposed), unit_(unit) {}

  int64_t order() const { return lu_.rows; }
  // Index of row i in a right-hand side.
  int64_t Place(int64_t i) const { return forward_ ? i : lu_.rows - 1 - i; }
  T Diagonal(int64_t place) const { return unit_ ? T{1} : lu_(place, place); }

  // y := y - t[final:, from:to] x[from:to], with t's strict triangle. Rows and columns are in the
  // order of substitution; x and y are indexed by Place(). Runs along the columns in memory.
  void Subtract(int64_t final, int64_t from, int64_t to, const T* x, T* y) const {
    if (transposed_) {
      for (int64_t i = final; i < order(); ++i)
        y[Place(i)] -= RowTimes(i, from, std::min(i, to), x);
      return;
    }
    for (int64_t k = from; k < to; ++k) {
      const int64_t place = Place(k);
      const T* column = &lu_(0, place);
      const T factor = x[place];
      const int64_t begin = forward_ ? std::max(k + 1, final) : 0;
      const int64_t end = forward_ ? order() : std::min(place, order() - final);
      for (int64_t i = begin; i < end; ++i) y[i] -= column[i] * factor;
    }
  }

 private:
  // t[i, from:to] x[from:to], if t is transposed.
  T RowTimes(int64_t i, int64_t from, int64_t to, const T* x) const {
    if (from >= to) return T{0};
    const T* row = &lu_(0, Place(i));
    const int64_t begin = forward_ ? from : Place(to - 1);
    const int64_t end = forward_ ? to : Place(from) + 1;
    T sum = 0;
    for (int64_t k = begin; k < end; ++k) sum += row[k] * x[k];
    return sum;
  }

  const MatrixView<T> lu_;
  const bool transposed_;
  const bool forward_;
  const bool unit_;
};

// Jacobi iteration for T x = b: x := D^-1 (b - (T - D) x), starting from x = D^-1 b. The iteration
// matrix is nilpotent. If row f is the first that a sweep changes, rows up to f are final
// afterwards, so at most `order` sweeps change anything.
template <class T>
class TriangularIteration {
 public:
  TriangularIteration(const Triangle<T>& triangle, RealPart<T> tolerance, StopRequested stop)
      : t_(triangle), tolerance_(tolerance), stop_(stop) {}

  // `b` is the right-hand side and is overwritten; `next` is scratch. `b`, `next` and `x` have
  // length `order`. Leaves `x` unfinished once `stop` returns true.
  void Solve(T* b, T* next, T* x) const {
    const int64_t n = t_.order();
    for (int64_t i = 0; i < n; ++i) x[i] = b[i] / t_.Diagonal(i);
    for (int64_t final = 0, changed = 0; final < n && !stop_(); final = changed) {
      changed = Sweep(final, b, next, x);
      t_.Subtract(changed, final, changed, x, b);
    }
  }

 private:
  // Sweeps the rows from `final` on. Returns the first row that is not final yet: one after the
  // first row that changed, or `order` if none did.
  int64_t Sweep(int64_t final, const T* b, T* next, T* x) const {
    const int64_t n = t_.order();
    std::copy_n(b, n, next);
    t_.Subtract(final, final, n, x, next);
    int64_t changed = n;
    for (int64_t i = final; i < n; ++i) {
      const int64_t place = t_.Place(i);
      const T now = next[place] / t_.Diagonal(place);
      // NaN and Inf never count as converged.
      if (!HasConverged(x[place], now, tolerance_)) changed = std::min(changed, i + 1);
      x[place] = now;
    }
    return changed;
  }

  const Triangle<T> t_;
  const RealPart<T> tolerance_;
  const StopRequested stop_;
};

template <class T>
void SolveColumn(const MatrixView<T>& lu, bool unit_in_l, Op op, RealPart<T> tolerance,
                 StopRequested stop, T* x, T* scratch) {
  const bool transposed = op != Op::kNone;
  const Triangle<T> l(lu, true, transposed, unit_in_l);
  const Triangle<T> u(lu, false, transposed, !unit_in_l);
  for (const Triangle<T>& triangle : {transposed ? u : l, transposed ? l : u}) {
    std::copy_n(x, lu.rows, scratch);
    TriangularIteration<T>(triangle, tolerance, stop).Solve(scratch, scratch + lu.rows, x);
  }
}

class HostIs final : public TriangularSolver {
 public:
  explicit HostIs(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "is",
        .description = "iterative substitution by Jacobi's sweeps (Cejka 2023)",
        .types = kAllTypes,
        .iterative = true};
    return kTraits;
  }

  // Assumes 50 sweeps, as for diagonally dominant factors.
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    constexpr double kSweeps = 50;
    return 2 * kCallSeconds +
           kSweeps * (FactorReadSeconds(dtype, n) * static_cast<double>(nrhs) +
                      SolveFlops(n, nrhs) / (kReferenceFlopsPerCore * RateFactor(dtype)));
  }

  // Holds two columns per core.
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t) const override {
    return MatrixBytes(n, 2 * executor_.budget().total(), dtype);
  }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double tolerance,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    const auto stop = [&] { return context.stop_requested(); };
    executor_.Run(WidthFor(b.rows * std::max(b.rows, b.cols)), [&](int cores) {
      DispatchDType(b.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        SolveAll(factor, op, static_cast<RealPart<T>>(tolerance), stop, b.As<T>(),
                 reinterpret_cast<T*>(workspace.data()), cores);
      });
    });
    return CheckNotStopped(stop);
  }

 private:
  template <class T>
  void SolveAll(const FactorView& factor, Op op, RealPart<T> tolerance, StopRequested stop,
                const MatrixView<T>& b, T* scratch, int cores) const {
    if (b.rows == 0) return;  // lu.data and b.data may be null
    const bool unit_in_l = factor.unit_diagonal == UnitDiagonal::kL;
    if (op == Op::kNone) ApplyInterchanges(factor.ipiv, InterchangeOrder::kForward, b);
    if (op == Op::kConjugateTranspose) Conjugate(b);
    ParallelFor(cores, cores, [&](int64_t core) {
      for (int64_t j = core; j < b.cols && !stop(); j += cores) {
        SolveColumn(factor.lu.As<T>(), unit_in_l, op, tolerance, stop, &b(0, j),
                    scratch + 2 * core * b.rows);
      }
    });
    if (op == Op::kConjugateTranspose) Conjugate(b);
    if (op != Op::kNone) ApplyInterchanges(factor.ipiv, InterchangeOrder::kBackward, b);
  }

  Executor& executor_;
};

}  // namespace

std::unique_ptr<TriangularSolver> MakeIs(Executor& executor) {
  return std::make_unique<HostIs>(executor);
}

}  // namespace crout::host
