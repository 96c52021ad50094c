// SPDX-License-Identifier: Apache-2.0

// Numeric phase: KLU within one block.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/host/klu/arena.h"
#include "kernels/host/klu/klu.h"
#include "kernels/host/klu/klu_entries.h"
#include "kernels/host/klu/klu_factor.h"
#include "kernels/scalar.h"
#include "kernels/sparse/entry_scales.h"
#include "kernels/sparse/numeric_findings.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

constexpr double kDiagonalPreference = 1e-3;

// Size of this many entries, index and value, in KLU's units of one number.
double Units(double entries, DType dtype) {
  return entries * (1 + sizeof(int) / static_cast<double>(SizeOf(dtype)));
}

struct WorkspaceLayout {
  WorkspaceLayout(const Analysis& analysis, DType dtype)
      : columns(static_cast<size_t>(analysis.nonzeros) * SizeOf(dtype)),
        bytes(columns + static_cast<size_t>(analysis.n + 1) * sizeof(int)) {}

  size_t values = 0;  // values of B
  size_t columns;     // start of each column
  size_t bytes;
};

// B in KLU's form: the indices of A, and its scaled values in float64 or complex128.
template <class T>
class ScaledMatrix {
 public:
  ScaledMatrix(const Analysis& analysis, const AnySparse& a, std::byte* workspace) {
    const WorkspaceLayout layout(analysis, kDTypeOf<T>);
    starts_ = reinterpret_cast<int*>(workspace + layout.columns);
    DispatchDType(a.dtype, [&](auto tag) {
      using Source = typename decltype(tag)::type;
      if constexpr (kIsComplex<T> == kIsComplex<Source>) {
        Fill(analysis, a.As<Source>(), reinterpret_cast<T*>(workspace + layout.values));
      }
    });
  }

  int* starts() const { return starts_; }
  int* rows() const { return rows_; }
  double* values() const { return reinterpret_cast<double*>(values_); }
  double max_abs() const { return max_abs_; }

 private:
  template <class Source>
  void Fill(const Analysis& analysis, const SparseView<Source>& a, T* values) {
    rows_ = const_cast<int*>(a.row);  // KLU only reads rows and values
    std::copy_n(a.column_start, a.n + 1, starts_);
    if constexpr (std::is_same_v<T, Source>) {
      if (analysis.row_scale.empty()) {
        values_ = const_cast<T*>(a.value);
        for (int64_t e = 0; e < analysis.nonzeros; ++e) {
          max_abs_ = std::max(max_abs_, Modulus(values_[e]));
        }
        return;
      }
    }
    values_ = values;
    for (int64_t j = 0; j < a.n; ++j) {
      const double of_column = analysis.row_scale.empty() ? 1 : analysis.column_scale[j];
      for (int64_t e = a.column_start[j]; e < a.column_start[j + 1]; ++e) {
        const double of_row = analysis.row_scale.empty() ? 1 : analysis.row_scale[a.row[e]];
        const T value = ToFloat64(a.value[e]);
        const EntryScales by = InOrder(LargestPart(value), of_row, of_column);
        values[e] = value * by.first * by.second;
        max_abs_ = std::max(max_abs_, Modulus(values[e]));
      }
    }
  }

  int* starts_ = nullptr;
  int* rows_ = nullptr;
  T* values_ = nullptr;
  double max_abs_ = 0;
};

klu_common Settings() {
  klu_common common;
  klu_defaults(&common);
  common.tol = kDiagonalPreference;
  common.scale = -1;  // B is scaled already, and its indices were checked.
  // L and U get the rest of the block and grow in place.
  common.initmem_amd = 1;
  common.memgrow = 1;
  common.btf = 0;
  return common;
}

template <class T>
double LargestOfU(const klu_numeric& numeric) {
  double largest = 0;
  const auto check = [&largest](int64_t, int64_t, T value) {
    if (!IsFinite(value)) largest = std::numeric_limits<double>::infinity();
  };
  const KluEntries<T> entries(numeric);
  entries.VisitLower(check);
  entries.VisitUpper([&](int64_t i, int64_t j, T value) {
    check(i, j, value);
    largest = std::max(largest, Modulus(value));
  });
  return largest;
}

double Growth(double largest, double max_abs) {
  if (max_abs > 0) return largest / max_abs;
  return largest == 0 ? 1 : std::numeric_limits<double>::infinity();
}

// Measures a factor of a matrix with entries up to summary.max_abs.
template <class T>
void Measure(const klu_numeric& numeric, NumericSummary& summary) {
  // Both of KLU's counts include the diagonal.
  summary.counts = {numeric.lnz - numeric.n, numeric.unz};
  summary.pivot_growth = Growth(LargestOfU<T>(numeric), summary.max_abs);
}

absl::Status Explain(const klu_common& common) {
  if (common.status == KLU_OUT_OF_MEMORY) {
    return absl::ResourceExhaustedError(
        "klu needs more memory than was reserved, because pivots off the diagonal cause fill-in. "
        "Use algorithm multifrontal for this matrix");
  }
  return absl::InternalError(absl::StrCat("klu failed with status ", common.status));
}

template <class T>
absl::StatusOr<NumericSummary> Factor(const Analysis& analysis, const AnySparse& a,
                                      std::span<std::byte> factor, std::byte* workspace,
                                      StopRequested stop) {
  auto& header = *reinterpret_cast<KluHeader*>(factor.data());
  header = {};
  header.original_address = factor.data();
  NumericSummary summary;
  if (analysis.n == 0) return summary;
  const ScaledMatrix<T> b(analysis, a, workspace);
  summary.max_abs = b.max_abs();
  KluOrder order(analysis);
  klu_common common = Settings();
  {
    const KluArena arena(factor.subspan(sizeof(KluHeader)), stop);
    const auto run = kIsComplex<T> ? klu_z_factor : klu_factor;
    header.numeric = run(b.starts(), b.rows(), b.values(), order.symbolic(), &common);
    header.used = sizeof(KluHeader) + arena.used();
    if (arena.stopped()) {
      header.numeric = nullptr;
      return absl::CancelledError("stopped in klu's numeric phase");
    }
  }
  if (common.status == KLU_SINGULAR) {
    header.numeric = nullptr;
    summary.info = common.numerical_rank + 1;
    summary.singular_column = common.singular_col;
    return summary;
  }
  if (header.numeric == nullptr) return Explain(common);
  summary.interchanges = common.noffdiag;
  Measure<T>(*header.numeric, summary);
  header.growth = summary.pivot_growth;
  header.interchanges = summary.interchanges;
  return summary;
}

// Recomputes the values of `numeric` from B, with the same pivots and pattern: klu_refactor() with
// a `stop`. Returns false if a pivot is 0.
template <class T>
absl::StatusOr<bool> RefactorColumns(const ScaledMatrix<T>& b, const Analysis& analysis,
                                     klu_numeric& numeric, StopRequested stop) {
  StopCounter counter(stop);
  T* const diagonal = static_cast<T*>(numeric.Udiag);
  T* const x = static_cast<T*>(numeric.Xwork);
  const T* const values = reinterpret_cast<const T*>(b.values());
  std::fill_n(x, analysis.n, T{0});
  for (int64_t k = 0; k < analysis.n; ++k) {
    const int64_t column = analysis.column_order[k];
    for (int e = b.starts()[column]; e < b.starts()[column + 1]; ++e) {
      x[numeric.Pinv[b.rows()[e]]] = values[e];
    }
    const KluColumn<T> upper(numeric, numeric.Uip, numeric.Ulen, k);
    for (int64_t i = 0; i < upper.length; ++i) {
      const int j = upper.row[i];
      const T u = std::exchange(x[j], T{0});
      upper.value[i] = u;
      const KluColumn<T> lower(numeric, numeric.Lip, numeric.Llen, j);
      for (int64_t l = 0; l < lower.length; ++l) x[lower.row[l]] -= lower.value[l] * u;
      if (counter.Stops(1 + lower.length)) return counter.status();
    }
    const T pivot = std::exchange(x[k], T{0});
    if (pivot == T{0}) return false;
    diagonal[k] = pivot;
    const KluColumn<T> lower(numeric, numeric.Lip, numeric.Llen, k);
    for (int64_t l = 0; l < lower.length; ++l) {
      lower.value[l] = std::exchange(x[lower.row[l]], T{0}) / pivot;
    }
    if (counter.Stops(1 + lower.length)) return counter.status();
  }
  return true;
}

template <class T>
absl::StatusOr<std::optional<NumericSummary>> Refactor(const Analysis& analysis, const AnySparse& a,
                                                       std::span<const std::byte> last,
                                                       std::span<std::byte> factor,
                                                       std::byte* workspace, StopRequested stop) {
  if (!KluNumeric(last, nullptr).exists()) return std::nullopt;
  const ScaledMatrix<T> b(analysis, a, workspace);
  const size_t used = reinterpret_cast<const KluHeader*>(last.data())->used;
  std::copy_n(last.data(), used, factor.data());
  KluNumeric numeric(factor, nullptr);
  CROUT_ASSIGN_OR_RETURN(const bool is_regular,
                         RefactorColumns(b, analysis, *numeric.numeric(), stop));
  if (!is_regular) return std::nullopt;
  auto& header = *reinterpret_cast<KluHeader*>(factor.data());
  NumericSummary summary;
  summary.max_abs = b.max_abs();
  summary.interchanges = header.interchanges;
  Measure<T>(*numeric.numeric(), summary);
  if (!(summary.pivot_growth <= std::max(kMaxKluGrowth, 10 * header.growth))) return std::nullopt;
  return summary;
}

absl::Status CheckSupported(const Analysis& analysis, const AnySparse& a, DType dtype) {
  CROUT_RETURN_IF_ERROR(CheckFits(analysis, a, dtype));
  if (analysis.kept > 0)
    return absl::InvalidArgumentError(
        "klu computes no Schur complement. Use algorithm multifrontal");
  if (WideOf(a.dtype) != dtype) {
    return absl::InvalidArgumentError(
        "klu supports only factors in float64 (complex128 for a complex matrix)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<size_t> KluFactorBytes(const Analysis& analysis, DType dtype) {
  const auto n = static_cast<double>(analysis.n);
  const auto foreseen = static_cast<double>(analysis.factor_entries());
  const double entries = std::min(n * (n - 1), 1.5 * foreseen + 8 * n);
  // Two paddings per column, the space KLU requires to be free before each column, and one growth
  // step.
  const double units = Units(entries, dtype) + 2 * n + Units(n + 1, dtype) + 4 * n + 64;
  if (units >= static_cast<double>(std::numeric_limits<int>::max())) {
    return absl::UnimplementedError(
        absl::StrCat("a factor of ", analysis.factor_entries(),
                     " entries exceeds the 32-bit indices of klu. Use algorithm multifrontal"));
  }
  // Arrays of int and a mark per column, Udiag, four work vectors, and alignment of twenty pieces.
  const auto order = static_cast<size_t>(analysis.n + 1);
  const size_t others = order * (8 * sizeof(int) + 5 * SizeOf(dtype)) + 20 * 16;
  return sizeof(KluHeader) + sizeof(klu_numeric) + static_cast<size_t>(units) * SizeOf(dtype) +
         others;
}

size_t KluWorkspaceBytes(const Analysis& analysis, DType dtype) {
  return WorkspaceLayout(analysis, dtype).bytes;
}

absl::StatusOr<NumericSummary> FactorKlu(const Analysis& analysis, const AnySparse& a, DType dtype,
                                         std::span<std::byte> factor,
                                         std::span<std::byte> workspace, StopRequested stop) {
  CROUT_RETURN_IF_ERROR(CheckSupported(analysis, a, dtype));
  return IsComplex(dtype)
             ? Factor<std::complex<double>>(analysis, a, factor, workspace.data(), stop)
             : Factor<double>(analysis, a, factor, workspace.data(), stop);
}

absl::StatusOr<std::optional<NumericSummary>> RefactorKlu(
    const Analysis& analysis, const AnySparse& a, DType dtype, std::span<const std::byte> last,
    std::span<std::byte> factor, std::span<std::byte> workspace, StopRequested stop) {
  CROUT_RETURN_IF_ERROR(CheckSupported(analysis, a, dtype));
  if (analysis.n == 0 || last.size() != factor.size()) return std::nullopt;
  return IsComplex(dtype)
             ? Refactor<std::complex<double>>(analysis, a, last, factor, workspace.data(), stop)
             : Refactor<double>(analysis, a, last, factor, workspace.data(), stop);
}

LogDeterminant KluDeterminant(const Analysis& analysis, const NumericSummary& summary,
                              std::span<const std::byte> factor, DType dtype) {
  if (summary.info > 0) return {0, -std::numeric_limits<double>::infinity()};
  LogDeterminant det;
  KluNumeric numeric(factor, nullptr);
  if (!numeric.exists()) return det;
  const klu_numeric& made = *numeric.numeric();
  for (int64_t k = 0; k < analysis.n; ++k) {
    const std::complex<double> u = IsComplex(dtype)
                                       ? static_cast<const std::complex<double>*>(made.Udiag)[k]
                                       : static_cast<const double*>(made.Udiag)[k];
    const double modulus = Modulus(u);
    det.log_abs += std::log(modulus);
    det.sign *= u / modulus;
  }
  const std::span<const int32_t> rows(made.Pnum, analysis.n);
  if (IsOdd(rows, analysis.column_order)) det.sign = -det.sign;
  for (const double scale : analysis.row_scale) det.log_abs -= std::log(scale);
  for (const double scale : analysis.column_scale) det.log_abs -= std::log(scale);
  return det;
}

absl::Status WriteKluEntries(const Analysis& analysis, std::span<const std::byte> factor,
                             DType dtype, const SparseDownloadLayout& layout, std::byte* out) {
  KluNumeric numeric(factor, nullptr);
  if (!numeric.exists())
    return absl::FailedPreconditionError("the matrix is singular: klu has no factor");
  if (IsComplex(dtype)) {
    using T = std::complex<double>;
    WriteFactor<T>(analysis, KluEntries<T>(*numeric.numeric()), layout, out);
  } else {
    WriteFactor<double>(analysis, KluEntries<double>(*numeric.numeric()), layout, out);
  }
  return absl::OkStatus();
}

}  // namespace crout::host
