// SPDX-License-Identifier: Apache-2.0

#include "tests/support/matrices/sparse_gallery.h"

#include <algorithm>

namespace crout::testing {
namespace {

void Put(std::vector<std::byte>& bytes, size_t& at, const void* from, size_t count) {
  const auto* const begin = static_cast<const std::byte*>(from);
  std::copy_n(begin, count, bytes.begin() + static_cast<int64_t>(at));
  at += count;
}

}  // namespace

PackedSparse PackEntries(std::vector<SparseEntry> entries, int64_t n, DType dtype) {
  std::stable_sort(entries.begin(), entries.end(), [](const SparseEntry& a, const SparseEntry& b) {
    return a.column != b.column ? a.column < b.column : a.row < b.row;
  });
  std::vector<SparseEntry> sums;
  for (const SparseEntry& entry : entries) {
    if (!sums.empty() && sums.back().row == entry.row && sums.back().column == entry.column) {
      sums.back().value += entry.value;
    } else {
      sums.push_back(entry);
    }
  }
  const int64_t nonzeros = std::ssize(sums);
  std::vector<int64_t> column_start(n + 1), row_start(n + 1);
  for (const SparseEntry& entry : sums) {
    ++column_start[entry.column + 1];
    ++row_start[entry.row + 1];
  }
  for (int64_t k = 0; k < n; ++k) {
    column_start[k + 1] += column_start[k];
    row_start[k + 1] += row_start[k];
  }
  std::vector<int32_t> row(nonzeros), column(nonzeros), position(nonzeros);
  std::vector<std::complex<double>> value(nonzeros);
  std::vector<int64_t> next(row_start.begin(), row_start.end());
  for (int64_t e = 0; e < nonzeros; ++e) {
    row[e] = sums[e].row;
    value[e] = sums[e].value;
    const int64_t at = next[sums[e].row]++;
    column[at] = sums[e].column;
    position[at] = static_cast<int32_t>(e);
  }
  PackedSparse packed{{}, dtype, n, nonzeros};
  packed.bytes.resize(SparseLayout(n, nonzeros, dtype).bytes);
  size_t at = 0;
  Put(packed.bytes, at, column_start.data(), (n + 1) * sizeof(int64_t));
  Put(packed.bytes, at, row_start.data(), (n + 1) * sizeof(int64_t));
  DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const std::complex<double>& v : value) {
      T x;
      if constexpr (kIsComplex<T>) {
        x = ConvertTo<T>(v);
      } else {
        x = static_cast<T>(v.real());
      }
      Put(packed.bytes, at, &x, sizeof(T));
    }
  });
  Put(packed.bytes, at, row.data(), nonzeros * sizeof(int32_t));
  Put(packed.bytes, at, column.data(), nonzeros * sizeof(int32_t));
  Put(packed.bytes, at, position.data(), nonzeros * sizeof(int32_t));
  return packed;
}

std::vector<SparseEntry> GridEntries(int64_t m, int dimensions) {
  constexpr double kWind[] = {20, 10, 5};
  const double h = 1.0 / static_cast<double>(m + 1);
  int64_t n = 1;
  double diagonal = 2.0 * dimensions;
  for (int d = 0; d < dimensions; ++d) {
    n *= m;
    diagonal += h * kWind[d];
  }
  std::vector<SparseEntry> entries;
  for (int64_t v = 0; v < n; ++v) {
    const auto row = static_cast<int32_t>(v);
    entries.push_back({row, row, diagonal});
    int64_t stride = 1;
    for (int d = 0; d < dimensions; ++d, stride *= m) {
      const int64_t coordinate = v / stride % m;
      const auto other = static_cast<int32_t>(stride);
      if (coordinate > 0) entries.push_back({row, row - other, -1 - h * kWind[d]});
      if (coordinate < m - 1) entries.push_back({row, row + other, -1});
    }
  }
  return entries;
}

}  // namespace crout::testing
