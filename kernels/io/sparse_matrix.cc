#include "kernels/io/sparse_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace crout {
namespace {

using Symmetry = MatrixMarketHeader::Symmetry;

// column_start of the matrix with its mirrored entries, duplicates counted apart.
std::vector<int64_t> CountColumns(const MatrixMarketHeader& header,
                                  const std::vector<std::vector<MatrixEntry>>& blocks) {
  std::vector<int64_t> start(header.columns + 1);
  const bool mirrored = header.symmetry != Symmetry::kGeneral;
  for (const auto& block : blocks) {
    for (const MatrixEntry& entry : block) {
      ++start[entry.column + 1];
      if (mirrored && entry.row != entry.column) ++start[entry.row + 1];
    }
  }
  std::partial_sum(start.begin(), start.end(), start.begin());
  return start;
}

// Moves every entry to its column, in file order.
void Scatter(const MatrixMarketHeader& header, std::vector<std::vector<MatrixEntry>> blocks,
             SparseMatrix* matrix) {
  std::vector<int64_t> next(matrix->column_start.begin(), matrix->column_start.end() - 1);
  const auto put = [&](int32_t row, int32_t column, double value) {
    const int64_t at = next[column]++;
    matrix->row[at] = row;
    matrix->value[at] = value;
  };
  const bool mirrored = header.symmetry != Symmetry::kGeneral;
  const double sign = header.symmetry == Symmetry::kSkewSymmetric ? -1.0 : 1.0;
  for (auto& block : blocks) {
    for (const MatrixEntry& entry : block) {
      put(entry.row, entry.column, entry.value);
      if (mirrored && entry.row != entry.column) put(entry.column, entry.row, sign * entry.value);
    }
    std::vector<MatrixEntry>().swap(block);
  }
}

using Sortable = std::pair<int32_t, double>;

bool IsSorted(const SparseMatrix& matrix, int64_t begin, int64_t end) {
  const auto rows = matrix.row.begin();
  return std::is_sorted(rows + begin, rows + end);
}

// The bytes that SortColumn takes for the longest column, and stable_sort for half of it.
size_t SortBytes(const SparseMatrix& matrix) {
  int64_t longest = 0;
  for (int64_t j = 0; j < matrix.columns; ++j) {
    const int64_t begin = matrix.column_start[j];
    const int64_t end = matrix.column_start[j + 1];
    if (end - begin > longest && !IsSorted(matrix, begin, end)) longest = end - begin;
  }
  return (longest + (longest + 1) / 2) * sizeof(Sortable);
}

// Sorts one column by row; entries of one row keep their order. Files sorted by row or by column
// arrive sorted, so that `scratch` is rarely used.
void SortColumn(int64_t begin, int64_t end, SparseMatrix* matrix, std::vector<Sortable>* scratch) {
  if (IsSorted(*matrix, begin, end)) return;
  scratch->clear();
  if (scratch->capacity() < static_cast<size_t>(end - begin)) {
    std::vector<Sortable>().swap(*scratch);  // First, or reserve() would hold both.
    scratch->reserve(end - begin);
  }
  for (int64_t i = begin; i < end; ++i) scratch->emplace_back(matrix->row[i], matrix->value[i]);
  std::stable_sort(scratch->begin(), scratch->end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (int64_t i = begin; i < end; ++i) {
    std::tie(matrix->row[i], matrix->value[i]) = (*scratch)[i - begin];
  }
}

// Sorts every column and closes the gaps that summed duplicates leave.
absl::Status SortAndSum(SparseMatrix* matrix) {
  std::vector<Sortable> scratch;
  int64_t out = 0;
  int64_t begin = 0;
  for (int64_t j = 0; j < matrix->columns; ++j) {
    const int64_t end = matrix->column_start[j + 1];
    SortColumn(begin, end, matrix, &scratch);
    for (int64_t i = begin; i < end;) {
      const int32_t row = matrix->row[i];
      double sum = matrix->value[i];
      for (++i; i < end && matrix->row[i] == row; ++i) sum += matrix->value[i];
      if (!std::isfinite(sum)) {
        return absl::InvalidArgumentError(
            absl::StrCat("the entries given for row ", row + 1, ", column ", j + 1,
                         " add up to a value beyond the range of float64"));
      }
      matrix->row[out] = row;
      matrix->value[out++] = sum;
    }
    matrix->column_start[j + 1] = out;
    begin = end;
  }
  if (out < matrix->nonzeros()) {
    matrix->row.resize(out);
    matrix->value.resize(out);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SparseMatrix> AssembleSparse(const MatrixMarketHeader& header,
                                            std::vector<std::vector<MatrixEntry>> blocks,
                                            absl::FunctionRef<absl::Status(size_t)> claim) {
  SparseMatrix matrix;
  matrix.rows = header.rows;
  matrix.columns = header.columns;
  matrix.column_start = CountColumns(header, blocks);
  matrix.row.resize(matrix.column_start.back());
  matrix.value.resize(matrix.column_start.back());
  Scatter(header, std::move(blocks), &matrix);
  const size_t sort = SortBytes(matrix);
  const size_t freed = header.entries * sizeof(MatrixEntry);
  if (sort > freed) {
    if (absl::Status status = claim(sort - freed); !status.ok()) return status;
  }
  if (absl::Status status = SortAndSum(&matrix); !status.ok()) return status;
  return matrix;
}

}  // namespace crout
