// SPDX-License-Identifier: Apache-2.0

// Digests of patterns, and checks of matrices, declared in analysis.h.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/entry_scales.h"
#include "kernels/stop_requested.h"
#include "kernels/util/digest.h"

namespace crout {
namespace {

// A second hash, of the output of SplitMix.
uint64_t Scramble(uint64_t x) {
  x = (x ^ (x >> 29)) * 0xd6e8feb86659fd93;
  return x ^ (x >> 32);
}

constexpr auto kNeverStop = [] { return false; };
constexpr double kSmallOnDiagonal = 0.01;
constexpr double kMaxMagnitudeRatio = 1e4;

// True if the largest entries of all lines are finite, in the range of the factor's type and of
// similar size.
bool AreAlike(const std::vector<double>& largest, SafeRange range) {
  if (largest.empty()) return true;
  const auto [least, most] = std::minmax_element(largest.begin(), largest.end());
  return range.contains(*most) && *most <= kMaxMagnitudeRatio * *least;
}

// Returns true if no entry (i, column_of_row(i)) is small compared with the largest entry of its
// row and column, and these largest entries are of similar size. scaled(size, i, j) is the modulus
// of entry (i, j) after scaling; `size` is the modulus before. Undefined once the counter stops.
template <class T, class ColumnOfRow, class Scaled>
bool DiagonalIsLarge(const SparseView<T>& a, SafeRange range, const ColumnOfRow& column_of_row,
                     const Scaled& scaled, StopCounter& counter) {
  std::vector<double> row_largest(a.n), column_largest(a.n), diagonal(a.n);
  for (int64_t j = 0; j < a.n; ++j) {
    if (counter.Stops(1 + a.column_start[j + 1] - a.column_start[j])) return false;
    for (int64_t e = a.column_start[j]; e < a.column_start[j + 1]; ++e) {
      const int32_t i = a.row[e];
      const double modulus = scaled(Modulus(a.value[e]), i, j);
      row_largest[i] = std::max(row_largest[i], modulus);
      column_largest[j] = std::max(column_largest[j], modulus);
      if (column_of_row(i) == j) diagonal[i] = modulus;
    }
  }
  for (int64_t i = 0; i < a.n; ++i) {
    const double largest = std::max(row_largest[i], column_largest[column_of_row(i)]);
    if (!(diagonal[i] >= kSmallOnDiagonal * largest) || diagonal[i] == 0) return false;
  }
  return AreAlike(row_largest, range) && AreAlike(column_largest, range);
}

}  // namespace

PatternKey PatternDigest(const AnySparse& a) {
  StopCounter counter(kNeverStop);
  return PatternDigest(a, counter);
}

PatternKey PatternDigest(const AnySparse& a, StopCounter& counter) {
  const SparseLayout at(a.n, a.nonzeros, a.dtype);
  const auto* const start = reinterpret_cast<const int64_t*>(a.data + at.column_start);
  const auto* const row = reinterpret_cast<const int32_t*>(a.data + at.row);
  const auto n = static_cast<uint64_t>(a.n);
  PatternKey key{{SplitMix(n), n}};
  for (uint64_t j = 0; j < n && !counter.Stops(1 + start[j + 1] - start[j]); ++j) {
    for (int64_t e = start[j]; e < start[j + 1]; ++e) {
      const uint64_t x = SplitMix(j * n + static_cast<uint64_t>(row[e]));
      key.half[0] += x;
      key.half[1] += Scramble(x);
    }
  }
  return key;
}

std::string PatternText(const PatternKey& key) { return DigestText(key.half[0]); }

bool ShouldUseMatching(const AnySparse& a, DType factor_dtype) {
  StopCounter counter(kNeverStop);
  return ShouldUseMatching(a, factor_dtype, counter);
}

bool ShouldUseMatching(const AnySparse& a, DType factor_dtype, StopCounter& counter) {
  return DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return !DiagonalIsLarge(
        a.As<T>(), SafeRangeOf(factor_dtype), [](int64_t i) { return i; },
        [](double size, int64_t, int64_t) { return size; }, counter);
  });
}

bool IsSuitableForValues(const Analysis& analysis, const AnySparse& a, DType factor_dtype) {
  StopCounter counter(kNeverStop);
  return IsSuitableForValues(analysis, a, factor_dtype, counter);
}

bool IsSuitableForValues(const Analysis& analysis, const AnySparse& a, DType factor_dtype,
                         StopCounter& counter) {
  if (!analysis.matched) return !ShouldUseMatching(a, factor_dtype, counter);
  if (analysis.unmatched_row >= 0 || analysis.n != a.n) return false;
  std::vector<int32_t> column_of_row(a.n);
  for (int64_t k = 0; k < a.n; ++k) column_of_row[analysis.row_order[k]] = analysis.column_order[k];
  return DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return DiagonalIsLarge(
        a.As<T>(), SafeRangeOf(factor_dtype), [&](int64_t i) { return column_of_row[i]; },
        [&](double size, int64_t i, int64_t j) {
          const EntryScales by = InOrder(size, analysis.row_scale[i], analysis.column_scale[j]);
          return size * by.first * by.second;
        },
        counter);
  });
}

bool IsSymmetric(const AnySparse& a) {
  return DispatchDType(a.dtype, [&](auto tag) {
    const auto view = a.As<typename decltype(tag)::type>();
    for (int64_t j = 0; j < a.n; ++j) {
      if (view.row_start[j] != view.column_start[j]) return false;
      for (int64_t e = view.column_start[j]; e < view.column_start[j + 1]; ++e) {
        if (view.row[e] != view.column[e]) return false;
        if (!(view.value[e] == view.value[view.position[e]])) return false;
      }
    }
    return true;
  });
}

}  // namespace crout
