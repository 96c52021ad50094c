// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/sparse_block.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/scalar.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Writable arrays of the block.
struct Arrays {
  Arrays(const SparseLayout& at, std::byte* block)
      : column_start(reinterpret_cast<int64_t*>(block + at.column_start)),
        row_start(reinterpret_cast<int64_t*>(block + at.row_start)),
        value(block + at.value),
        row(reinterpret_cast<int32_t*>(block + at.row)),
        column(reinterpret_cast<int32_t*>(block + at.column)),
        position(reinterpret_cast<int32_t*>(block + at.position)) {}

  int64_t* column_start;
  int64_t* row_start;
  std::byte* value;
  int32_t* row;
  int32_t* column;
  int32_t* position;
};

// Writes the values as T. Returns the index of the first one that is not finite in T, or the number
// of values if all are finite or the counter stops.
template <class T>
int64_t WriteValues(SparseMatrix& matrix, T* value, StopCounter& counter) {
  const int64_t count = matrix.nonzeros();
  for (int64_t e = 0; e < count && !counter.Stops(); ++e) {
    value[e] = ConvertTo<T>(matrix.Value<WideType<T>>(e));
    if (!IsFinite(value[e])) return e;
  }
  std::vector<double>().swap(matrix.value);
  std::vector<double>().swap(matrix.imaginary);
  return count;
}

template <class T>
void Move(std::vector<T>& from, T* to) {
  std::copy(from.begin(), from.end(), to);
  std::vector<T>().swap(from);
}

// Computes the index by rows from the index by columns.
void IndexRows(int64_t n, const Arrays& arrays, StopCounter& counter) {
  // While entries are placed, the start of row i is stored at i + 1.
  int64_t* const start = arrays.row_start;
  std::fill_n(start, n + 1, 0);
  const int64_t count = arrays.column_start[n];
  for (int64_t e = 0; e < count && !counter.Stops(); ++e) {
    if (const int64_t row = arrays.row[e]; row + 2 <= n) ++start[row + 2];
  }
  std::partial_sum(start, start + n + 1, start);
  for (int64_t j = 0; j < n; ++j) {
    if (counter.Stops(1 + arrays.column_start[j + 1] - arrays.column_start[j])) return;
    for (int64_t e = arrays.column_start[j]; e < arrays.column_start[j + 1]; ++e) {
      const int64_t place = start[arrays.row[e] + 1]++;
      arrays.column[place] = static_cast<int32_t>(j);
      arrays.position[place] = static_cast<int32_t>(e);
    }
  }
}

}  // namespace

absl::StatusOr<std::optional<EntryPlace>> WriteSparseBlock(SparseMatrix matrix, DType dtype,
                                                           std::byte* block, StopRequested stop) {
  StopCounter counter(stop);
  const int64_t n = matrix.rows;
  const int64_t count = matrix.nonzeros();
  const Arrays arrays(SparseLayout(n, count, dtype), block);
  const int64_t written = DispatchDType(dtype, [&](auto tag) {
    return WriteValues(matrix, reinterpret_cast<typename decltype(tag)::type*>(arrays.value),
                       counter);
  });
  CROUT_RETURN_IF_ERROR(counter.status());
  if (written < count) {
    const auto& start = matrix.column_start;
    const auto next = std::upper_bound(start.begin(), start.end(), written);
    return EntryPlace{matrix.row[written], next - start.begin() - 1};
  }
  Move(matrix.column_start, arrays.column_start);
  Move(matrix.row, arrays.row);
  IndexRows(n, arrays, counter);
  CROUT_RETURN_IF_ERROR(counter.status());
  return std::nullopt;
}

}  // namespace crout
