#include "kernels/io/sparse_matrix.h"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/scalar.h"

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

int64_t Expanded(const MatrixMarketHeader& header) {
  return header.symmetry == Symmetry::kGeneral ? header.entries : 2 * header.entries;
}

// An entry of the matrix that is assembled; T is double or std::complex<double>.
template <class T>
void Put(int64_t at, int32_t row, T value, SparseMatrix* matrix) {
  matrix->row[at] = row;
  if constexpr (kIsComplex<T>) {
    matrix->value[at] = value.real();
    matrix->imaginary[at] = value.imag();
  } else {
    matrix->value[at] = value;
  }
}

// The entry across the diagonal.
template <class T>
T Mirrored(Symmetry symmetry, T value) {
  if constexpr (kIsComplex<T>) {
    return {MirrorSign(symmetry) * value.real(), ImaginaryMirrorSign(symmetry) * value.imag()};
  } else {
    return MirrorSign(symmetry) * value;
  }
}

// Moves every entry to its column, in file order, and its line to the same place of the map.
template <class T>
void Scatter(const MatrixMarketHeader& header, std::vector<std::vector<MatrixEntry>> blocks,
             std::vector<std::vector<double>> imaginary, SparseMatrix* matrix, LineMap* map) {
  std::vector<int64_t> next(matrix->column_start.begin(), matrix->column_start.end() - 1);
  const Symmetry symmetry = header.symmetry;
  const bool mirrored = symmetry != Symmetry::kGeneral;
  uint32_t line = 0;
  const auto note = [&](int64_t at, uint32_t source) {
    if (map != nullptr) map->source[at] = source;
  };
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (size_t i = 0; i < blocks[b].size(); ++i) {
      const MatrixEntry& entry = blocks[b][i];
      T value(entry.value);
      if constexpr (kIsComplex<T>) value.imag(imaginary[b][i]);
      const bool across = mirrored && entry.row != entry.column;
      const bool real = symmetry == Symmetry::kHermitian && entry.row == entry.column;
      note(next[entry.column], real ? line | ValueMap::kReal : line);
      Put(next[entry.column]++, entry.row, value, matrix);
      if (across) {
        note(next[entry.row], line | ValueMap::kMirrored);
        Put(next[entry.row]++, entry.column, Mirrored(symmetry, value), matrix);
      }
      ++line;
    }
    std::vector<MatrixEntry>().swap(blocks[b]);
    if constexpr (kIsComplex<T>) std::vector<double>().swap(imaginary[b]);
  }
}

// The source fills what would be a gap.
template <class T>
struct Sortable {
  int32_t row;
  uint32_t source;
  T value;
};

bool IsSorted(const SparseMatrix& matrix, int64_t begin, int64_t end) {
  const auto rows = matrix.row.begin();
  return std::is_sorted(rows + begin, rows + end);
}

// The bytes that SortColumn takes for the longest column, and stable_sort for half of it.
template <class T>
size_t SortBytes(const SparseMatrix& matrix) {
  int64_t longest = 0;
  for (int64_t j = 0; j < matrix.columns; ++j) {
    const int64_t begin = matrix.column_start[j];
    const int64_t end = matrix.column_start[j + 1];
    if (end - begin > longest && !IsSorted(matrix, begin, end)) longest = end - begin;
  }
  return (longest + (longest + 1) / 2) * sizeof(Sortable<T>);
}

// Sorts one column by row; entries of one row keep their order. Files sorted by row or by column
// arrive sorted, so that `scratch` is rarely used.
template <class T>
void SortColumn(int64_t begin, int64_t end, SparseMatrix* matrix, LineMap* map,
                std::vector<Sortable<T>>* scratch) {
  if (IsSorted(*matrix, begin, end)) return;
  scratch->clear();
  if (scratch->capacity() < static_cast<size_t>(end - begin)) {
    std::vector<Sortable<T>>().swap(*scratch);  // First, or reserve() would hold both.
    scratch->reserve(end - begin);
  }
  for (int64_t i = begin; i < end; ++i) {
    scratch->push_back({matrix->row[i], map == nullptr ? 0 : map->source[i], matrix->Value<T>(i)});
  }
  std::stable_sort(scratch->begin(), scratch->end(),
                   [](const auto& a, const auto& b) { return a.row < b.row; });
  for (int64_t i = begin; i < end; ++i) {
    const Sortable<T>& entry = (*scratch)[i - begin];
    Put(i, entry.row, entry.value, matrix);
    if (map != nullptr) map->source[i] = entry.source;
  }
}

// Sorts every column and closes the gaps that summed duplicates leave; the map's sources stay where
// they are.
template <class T>
absl::Status SortAndSum(SparseMatrix* matrix, LineMap* map) {
  std::vector<Sortable<T>> scratch;
  int64_t out = 0;
  int64_t begin = 0;
  for (int64_t j = 0; j < matrix->columns; ++j) {
    const int64_t end = matrix->column_start[j + 1];
    SortColumn<T>(begin, end, matrix, map, &scratch);
    for (int64_t i = begin; i < end;) {
      const int32_t row = matrix->row[i];
      if (map != nullptr) map->start.push_back(static_cast<int32_t>(i));
      T sum = matrix->Value<T>(i);
      for (++i; i < end && matrix->row[i] == row; ++i) sum += matrix->Value<T>(i);
      if (!IsFinite(sum)) {
        return absl::InvalidArgumentError(
            absl::StrCat("the entries given for row ", row + 1, ", column ", j + 1,
                         " (from 1) add up to a value beyond the range of float64"));
      }
      Put(out++, row, sum, matrix);
    }
    matrix->column_start[j + 1] = out;
    begin = end;
  }
  if (out < matrix->nonzeros()) {
    matrix->row.resize(out);
    matrix->value.resize(out);
    if constexpr (kIsComplex<T>) matrix->imaginary.resize(out);
  }
  return absl::OkStatus();
}

void StartMap(const MatrixMarketHeader& header, int64_t sources, LineMap* map) {
  map->shape.lines = header.entries;
  map->shape.sources = sources;
  map->shape.mirror_sign = MirrorSign(header.symmetry);
  map->shape.imaginary_mirror_sign = ImaginaryMirrorSign(header.symmetry);
  map->source.resize(sources);
  map->start.reserve(sources + 1);
}

// AssembleSparse() with values of type T.
template <class T>
absl::StatusOr<SparseMatrix> Assemble(const MatrixMarketHeader& header,
                                      std::vector<std::vector<MatrixEntry>> blocks,
                                      std::vector<std::vector<double>> imaginary,
                                      absl::FunctionRef<absl::Status(size_t)> claim, LineMap* map) {
  SparseMatrix matrix;
  matrix.rows = header.rows;
  matrix.columns = header.columns;
  matrix.column_start = CountColumns(header, blocks);
  matrix.row.resize(matrix.column_start.back());
  matrix.value.resize(matrix.column_start.back());
  if constexpr (kIsComplex<T>) matrix.imaginary.resize(matrix.column_start.back());
  if (map != nullptr) StartMap(header, matrix.nonzeros(), map);
  Scatter<T>(header, std::move(blocks), std::move(imaginary), &matrix, map);
  const size_t sort = SortBytes<T>(matrix);
  const size_t freed =
      header.entries * (sizeof(MatrixEntry) + (kIsComplex<T> ? sizeof(double) : 0));
  if (sort > freed) {
    if (absl::Status status = claim(sort - freed); !status.ok()) return status;
  }
  if (absl::Status status = SortAndSum<T>(&matrix, map); !status.ok()) return status;
  if (map != nullptr) {
    map->start.push_back(static_cast<int32_t>(map->source.size()));
    map->shape.elements = matrix.nonzeros();
  }
  return matrix;
}

}  // namespace

size_t LineMapBytes(const MatrixMarketHeader& header) {
  return (2 * static_cast<size_t>(Expanded(header)) + 1) * sizeof(int32_t);
}

absl::StatusOr<SparseMatrix> AssembleSparse(const MatrixMarketHeader& header,
                                            std::vector<std::vector<MatrixEntry>> blocks,
                                            std::vector<std::vector<double>> imaginary,
                                            absl::FunctionRef<absl::Status(size_t)> claim,
                                            LineMap* map) {
  if (header.complex()) {
    return Assemble<std::complex<double>>(header, std::move(blocks), std::move(imaginary), claim,
                                          map);
  }
  return Assemble<double>(header, std::move(blocks), {}, claim, map);
}

}  // namespace crout
