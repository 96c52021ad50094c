// SPDX-License-Identifier: Apache-2.0

#include "client/cli/input/packed_matrix.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace crout::cli {
namespace {

// Entries ordered by column, and by row within a column; duplicates are merged.
std::vector<Entry> SortedEntries(const LocalMatrix& matrix) {
  std::vector<Entry> entries;
  const bool dense = matrix.dense() != nullptr;
  matrix.ForEach([&](int64_t i, int64_t j, std::complex<double> value) {
    if (!dense || value != 0.0) entries.push_back({i, j, value});
  });
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.col, a.row) < std::pair(b.col, b.row);
  });
  size_t kept = 0;
  for (const Entry& entry : entries) {
    if (kept > 0 && entries[kept - 1].row == entry.row && entries[kept - 1].col == entry.col) {
      entries[kept - 1].value += entry.value;
    } else {
      entries[kept++] = entry;
    }
  }
  entries.resize(kept);
  return entries;
}

// Builds the arrays of SparseLayout.
template <class T>
void Fill(const std::vector<Entry>& entries, int64_t n, std::byte* block) {
  const int64_t nonzeros = std::ssize(entries);
  const SparseLayout at(n, nonzeros, kDTypeOf<T>);
  auto* const column_start = reinterpret_cast<int64_t*>(block + at.column_start);
  auto* const row_start = reinterpret_cast<int64_t*>(block + at.row_start);
  auto* const value = reinterpret_cast<T*>(block + at.value);
  auto* const row = reinterpret_cast<int32_t*>(block + at.row);
  auto* const column = reinterpret_cast<int32_t*>(block + at.column);
  auto* const position = reinterpret_cast<int32_t*>(block + at.position);
  for (const Entry& entry : entries) {
    ++column_start[entry.col + 1];
    ++row_start[entry.row + 1];
  }
  for (int64_t i = 0; i < n; ++i) {
    column_start[i + 1] += column_start[i];
    row_start[i + 1] += row_start[i];
  }
  std::vector<int64_t> next(row_start, row_start + n);
  for (int64_t e = 0; e < nonzeros; ++e) {
    const Entry& entry = entries[e];
    if constexpr (kIsComplex<T>) {
      value[e] = entry.value;
    } else {
      value[e] = entry.value.real();
    }
    row[e] = static_cast<int32_t>(entry.row);
    const int64_t place = next[entry.row]++;
    column[place] = static_cast<int32_t>(entry.col);
    position[place] = static_cast<int32_t>(e);
  }
}

}  // namespace

absl::StatusOr<PackedMatrix> PackedMatrix::Pack(const LocalMatrix& matrix) {
  if (matrix.rows() != matrix.cols()) {
    return absl::InvalidArgumentError(absl::StrCat("the matrix is ", matrix.rows(), " x ",
                                                   matrix.cols(),
                                                   ". Only square matrices can be factored"));
  }
  // Checked before memory is allocated for the order that a header declares.
  const absl::StatusOr<size_t> least = SparseBytes(matrix.rows(), 0, DType::kFloat64);
  if (!least.ok()) return least.status();
  const std::vector<Entry> entries = SortedEntries(matrix);
  PackedMatrix packed;
  packed.n_ = matrix.rows();
  packed.nonzeros_ = std::ssize(entries);
  const bool complex = std::any_of(entries.begin(), entries.end(),
                                   [](const Entry& entry) { return entry.value.imag() != 0; });
  packed.dtype_ = complex ? DType::kComplex128 : DType::kFloat64;
  const absl::StatusOr<size_t> bytes = SparseBytes(packed.n_, packed.nonzeros_, packed.dtype_);
  if (!bytes.ok()) return bytes.status();
  packed.block_.resize(*bytes);
  if (complex) {
    Fill<std::complex<double>>(entries, packed.n_, packed.block_.data());
  } else {
    Fill<double>(entries, packed.n_, packed.block_.data());
  }
  return packed;
}

Array PackedMatrix::Values() const {
  const SparseLayout at(n_, nonzeros_, dtype_);
  const auto values = block_.begin() + static_cast<int64_t>(at.value);
  return {.dtype = IsComplex(dtype_) ? Dtype::kComplex128 : Dtype::kFloat64,
          .rows = nonzeros_,
          .cols = 1,
          .bytes = {values, values + nonzeros_ * static_cast<int64_t>(SizeOf(dtype_))}};
}

}  // namespace crout::cli
