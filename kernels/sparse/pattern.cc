// What analysis.h asks of a matrix without analysing it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/sparse/analysis.h"

namespace crout {
namespace {

// Of splitmix64: every bit of the result depends on every one of x.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

constexpr double kSmallOnDiagonal = 0.01;
constexpr double kFarApart = 1e4;

// Whether what is largest in each line differs much from line to line.
bool FarApart(const std::vector<double>& largest) {
  if (largest.empty()) return false;
  const auto [least, most] = std::minmax_element(largest.begin(), largest.end());
  return *most > kFarApart * *least;
}

// Whether the entries (i, column_of_row(i)), every (i, j) multiplied by scale(i, j), are not small
// beside what is largest in their lines, and those are not far apart.
template <class T, class ColumnOfRow, class Scale>
bool DiagonalIsLarge(const SparseView<T>& a, const ColumnOfRow& column_of_row, const Scale& scale) {
  std::vector<double> row_largest(a.n), column_largest(a.n), diagonal(a.n);
  for (int64_t j = 0; j < a.n; ++j) {
    for (int64_t e = a.column_start[j]; e < a.column_start[j + 1]; ++e) {
      const int32_t i = a.row[e];
      const double modulus = Modulus(a.value[e]) * scale(i, j);
      row_largest[i] = std::max(row_largest[i], modulus);
      column_largest[j] = std::max(column_largest[j], modulus);
      if (column_of_row(i) == j) diagonal[i] = modulus;
    }
  }
  for (int64_t i = 0; i < a.n; ++i) {
    const double largest = std::max(row_largest[i], column_largest[column_of_row(i)]);
    if (!(diagonal[i] >= kSmallOnDiagonal * largest) || diagonal[i] == 0) return false;
  }
  return !FarApart(row_largest) && !FarApart(column_largest);
}

}  // namespace

PatternKey PatternDigest(const AnySparse& a) {
  const SparseLayout at(a.n, a.nonzeros, a.dtype);
  const auto* const start = reinterpret_cast<const int64_t*>(a.data + at.column_start);
  const auto* const row = reinterpret_cast<const int32_t*>(a.data + at.row);
  uint64_t first = Mix(a.n + 0x9e3779b97f4a7c15);
  uint64_t second = Mix(a.nonzeros + 0x3c6ef372fe94f82b);
  // One multiplication of each half waits for the one before: all else is done meanwhile.
  const auto add = [&](uint64_t x) {
    first = (first ^ x) * 0x9fb21c651e98df25;
    first ^= first >> 32;
    second = (second + x) * 0xd6e8feb86659fd93;
    second ^= second >> 29;
  };
  for (int64_t j = 0; j < a.n; ++j) {
    add(static_cast<uint64_t>(start[j + 1]));
    int64_t e = start[j];
    for (; e + 1 < start[j + 1]; e += 2) {
      add(static_cast<uint32_t>(row[e]) | uint64_t{static_cast<uint32_t>(row[e + 1])} << 32);
    }
    if (e < start[j + 1]) add(static_cast<uint32_t>(row[e]));
  }
  return {{Mix(first), Mix(second)}};
}

bool AsksForMatching(const AnySparse& a) {
  return DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return !DiagonalIsLarge(
        a.As<T>(), [](int64_t i) { return i; }, [](int64_t, int64_t) { return 1.0; });
  });
}

bool SuitsValues(const Analysis& analysis, const AnySparse& a) {
  if (!analysis.matched) return !AsksForMatching(a);
  if (analysis.unmatched_row >= 0 || analysis.n != a.n) return false;
  std::vector<int32_t> column_of_row(a.n);
  for (int64_t k = 0; k < a.n; ++k) column_of_row[analysis.row_order[k]] = analysis.column_order[k];
  return DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return DiagonalIsLarge(
        a.As<T>(), [&](int64_t i) { return column_of_row[i]; },
        [&](int64_t i, int64_t j) { return analysis.row_scale[i] * analysis.column_scale[j]; });
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
