// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/solve/prepared_solves.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/jobs/factorize.h"
#include "tests/support/ratios.h"

namespace crout {
namespace {

// Solves op(T) x = b by substitution in V, where T is L or U of `lu`. Overwrites b with x.
template <class V>
void Substitute(const HostMatrix& lu, int64_t n, bool lower, bool unit, Op op, std::vector<V>& b) {
  const bool forward = lower == (op == Op::kNone);
  for (int64_t s = 0; s < n; ++s) {
    const int64_t k = forward ? s : n - 1 - s;
    if (!unit) b[k] /= static_cast<V>(lu[k + k * n]);
    const int64_t begin = forward ? k + 1 : 0;
    const int64_t end = forward ? n : k;
    for (int64_t i = begin; i < end; ++i) {
      b[i] -= static_cast<V>(op == Op::kNone ? lu[i + k * n] : lu[k + i * n]) * b[k];
    }
  }
}

// Returns X with op(A) X = B, computed by substitution in V with a downloaded factor.
template <class V>
HostMatrix SubstituteWith(const HostFactor& factor, int64_t n, UnitDiagonal unit, Op op,
                          const HostMatrix& b) {
  HostMatrix x(b.size());
  for (size_t c = 0; c * n < b.size(); ++c) {
    std::vector<V> column(b.begin() + c * n, b.begin() + (c + 1) * n);
    if (op == Op::kNone) {
      for (int64_t i = 0; i < n; ++i) std::swap(column[i], column[factor.ipiv[i] - 1]);
    }
    for (const bool lower : {op == Op::kNone, op != Op::kNone}) {
      Substitute(factor.lu, n, lower, lower == (unit == UnitDiagonal::kL), op, column);
    }
    if (op == Op::kTranspose) {
      for (int64_t i = n; i-- > 0;) std::swap(column[i], column[factor.ipiv[i] - 1]);
    }
    std::copy(column.begin(), column.end(), x.begin() + c * n);
  }
  return x;
}

}  // namespace

HostMatrix Substituted(const HostFactor& factor, int64_t n, UnitDiagonal unit, Op op, DType dtype,
                       const HostMatrix& b) {
  return dtype == DType::kFloat64 ? SubstituteWith<double>(factor, n, unit, op, b)
                                  : SubstituteWith<float>(factor, n, unit, op, b);
}

HostMatrix ProductOf(const HostMatrix& lu, int64_t n, UnitDiagonal unit) {
  HostMatrix a(n * n);
  for (int64_t j = 0; j < n; ++j) {
    std::vector<long double> sum(n, 0);
    for (int64_t k = 0; k <= j; ++k) {
      const long double u = k == j && unit == UnitDiagonal::kU ? 1 : lu[k + j * n];
      for (int64_t i = k; i < n; ++i) {
        sum[i] += (i == k && unit == UnitDiagonal::kL ? 1 : lu[i + k * n]) * u;
      }
    }
    std::copy(sum.begin(), sum.end(), a.begin() + j * n);
  }
  return a;
}

void PreparedSolveTest::SetUp() {
  GpuTest::SetUp();
  if (IsSkipped()) return;
  gpu_ = std::make_unique<Bench>(Gpu());
  ours_ = SolverOf(Gpu(), "crout_solve");
}

absl::StatusOr<Factorization> PreparedSolveTest::Prepared(const HostMatrix& a, int64_t n,
                                                          DType dtype, std::string_view algorithm) {
  FactorizeOptions options = OptionsOf(Gpu(), dtype, algorithm);
  options.prepare = ours_;
  // Substituted() supports no scales.
  options.equilibrate = EquilibrateMode::kOff;
  return gpu_->jobs().Factor(a, n, dtype, Layout::kColumnMajor, options);
}

Factorization PreparedSolveTest::PreparedStored(const HostMatrix& lu, int64_t n, DType dtype,
                                                UnitDiagonal unit) {
  Factorization factor = StoredFactor(*gpu_, lu, n, dtype, unit);
  factor.parts.Add(kPreparedPart, PartKind::kPrepared,
                   gpu_->Allocate(*ours_->PreparedBytes(dtype, n)));
  const Buffer& prepared = factor.prepared();
  EXPECT_TRUE(
      ours_->Prepare(gpu_->context(), factor.view(), {prepared.data(), prepared.size()}).ok());
  factor.summary.preparation = gpu_->Wait().preparation;
  return factor;
}

Factorization PreparedSolveTest::PreparedWithMatrix(const HostMatrix& lu, const HostMatrix& a,
                                                    int64_t n, DType dtype, UnitDiagonal unit) {
  Factorization factor = PreparedStored(lu, n, dtype, unit);
  factor.parts.Add(kMatrixPart, PartKind::kOperand, gpu_->Put(testing::Packed(a, n, n, dtype)));
  factor.summary.norm_one = testing::NormOne(a, n);
  factor.summary.norm_inf = testing::NormInf(a, n);
  return factor;
}

}  // namespace crout
