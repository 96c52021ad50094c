#include "kernels/host/cmpp.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/host/cost_model.h"

namespace crout {
namespace {

constexpr int64_t kBlock = 48;      // Columns (rows of U) that are finished together.
constexpr int64_t kRowStrip = 512;  // Rows updated at a time: four columns of L stay in L1.

// c := c - l u, where c is rows x cols, l rows x depth, u depth x cols, all with one ld.
template <class T>
void SubtractProduct(const T* l, const T* u, T* c, int64_t rows, int64_t cols, int64_t depth,
                     int64_t ld) {
  for (int64_t i0 = 0; i0 < rows; i0 += kRowStrip) {
    const int64_t strip = std::min(kRowStrip, rows - i0);
    for (int64_t j = 0; j < cols; ++j) {
      T* target = c + i0 + j * ld;
      const T* factors = u + j * ld;
      int64_t m = 0;
      for (; m + 4 <= depth; m += 4) {
        const T* l0 = l + i0 + m * ld;
        const T* l1 = l0 + ld;
        const T* l2 = l1 + ld;
        const T* l3 = l2 + ld;
        const T u0 = factors[m], u1 = factors[m + 1], u2 = factors[m + 2], u3 = factors[m + 3];
        for (int64_t i = 0; i < strip; ++i) {
          target[i] -= (l0[i] * u0 + l1[i] * u1) + (l2[i] * u2 + l3[i] * u3);
        }
      }
      for (; m < depth; ++m) {
        const T* l0 = l + i0 + m * ld;
        for (int64_t i = 0; i < strip; ++i) target[i] -= l0[i] * factors[m];
      }
    }
  }
}

template <class T>
class Cmpp {
 public:
  Cmpp(const MatrixView<T>& a, int64_t* ipiv) : a_(a), ipiv_(ipiv) {}

  // Returns LAPACK's info.
  int64_t Run() {
    for (int64_t begin = 0; begin < a_.rows; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, a_.rows);
      Subtract(begin, a_.rows, begin, end, 0, begin);
      for (int64_t k = begin; k < end; ++k) FinishColumn(k, begin, end);
      Subtract(begin, end, end, a_.cols, 0, begin);
      for (int64_t j = end; j < a_.cols; ++j) FinishRowsOfU(begin, end, j);
    }
    return info_;
  }

 private:
  // a[r0:r1, c0:c1] -= L[r0:r1, m0:m1] U[m0:m1, c0:c1]
  void Subtract(int64_t r0, int64_t r1, int64_t c0, int64_t c1, int64_t m0, int64_t m1) {
    if (r0 >= r1 || c0 >= c1 || m0 >= m1) return;
    SubtractProduct(&a_(r0, m0), &a_(m0, c0), &a_(r0, c0), r1 - r0, c1 - c0, m1 - m0, a_.ld);
  }

  void FinishColumn(int64_t k, int64_t begin, int64_t end) {
    Subtract(k, a_.rows, k, k + 1, begin, k);
    Pivot(k);
    if (info_ == 0 && a_(k, k) == T{0}) info_ = k + 1;
    for (int64_t j = k + 1; j < end; ++j) {
      for (int64_t m = begin; m < k; ++m) a_(k, j) -= a_(k, m) * a_(m, j);
      a_(k, j) = DividedByPivot(a_(k, j), k);
    }
  }

  void FinishRowsOfU(int64_t begin, int64_t end, int64_t j) {
    for (int64_t k = begin; k < end; ++k) {
      a_(k, j) = DividedByPivot(a_(k, j), k);
      const T u = a_(k, j);
      for (int64_t i = k + 1; i < end; ++i) a_(i, j) -= a_(i, k) * u;
    }
  }

  T DividedByPivot(T value, int64_t k) const { return a_(k, k) == T{0} ? T{0} : value / a_(k, k); }

  void Pivot(int64_t k) {
    const T* column = &a_(0, k);
    const T* largest = std::max_element(column + k, column + a_.rows,
                                        [](T x, T y) { return std::abs(x) < std::abs(y); });
    const int64_t p = largest - column;
    ipiv_[k] = p + 1;
    if (p == k) return;
    for (int64_t j = 0; j < a_.cols; ++j) std::swap(a_(k, j), a_(p, j));
  }

  const MatrixView<T> a_;
  int64_t* const ipiv_;
  int64_t info_ = 0;
};

class HostCmpp final : public LuAlgorithm {
 public:
  explicit HostCmpp(HostExecutor& executor) : executor_(executor) {}

  const AlgorithmTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, const LuParameters&) const override {
    return 0;
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    return kCallSeconds + LuFlops(n) / (kReferenceFlopsPerCore * RateFactor(dtype));
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte>, const LuParameters&, StopRequested) const override {
    executor_.Run(Width::kOneCore, [&](int) {
      context.report().info = static_cast<int32_t>(DispatchDType(a.dtype, [&](auto tag) {
        return Cmpp(a.As<typename decltype(tag)::type>(), ipiv).Run();
      }));
    });
    return absl::OkStatus();
  }

 private:
  HostExecutor& executor_;
  const AlgorithmTraits traits_{"cmpp", UnitDiagonal::kU, PivotRule::kPartial,
                                "Crout's method with partial pivoting (Cejka 2023), reference"};
};

}  // namespace

std::unique_ptr<LuAlgorithm> MakeHostCmpp(HostExecutor& executor) {
  return std::make_unique<HostCmpp>(executor);
}

}  // namespace crout
