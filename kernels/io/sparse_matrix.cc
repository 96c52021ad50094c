// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/sparse_matrix.h"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/scalar.h"
#include "kernels/stop_requested.h"
#include "kernels/util/digest.h"

namespace crout {
namespace {

using Symmetry = MatrixMarketHeader::Symmetry;

// Provides the interface of EntryPieces for blocks of entries in file order.
class EntryBlocks {
 public:
  EntryBlocks(std::vector<std::vector<MatrixEntry>> blocks,
              std::vector<std::vector<double>> imaginary)
      : blocks_(std::move(blocks)), imaginary_(std::move(imaginary)) {}

  size_t bytes() const {
    size_t entries = 0;
    for (const auto& block : blocks_) entries += block.size();
    return entries * (sizeof(MatrixEntry) + (imaginary_.empty() ? 0 : sizeof(double)));
  }

  template <class Visit>
  void ForPositions(const Visit& visit) const {
    for (const auto& block : blocks_) {
      for (const MatrixEntry& entry : block) {
        if (!visit(entry.row, entry.column)) return;
      }
    }
  }

  template <class T, class Visit>
  void Drain(const Visit& visit) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      for (size_t i = 0; i < blocks_[b].size(); ++i) {
        const MatrixEntry& entry = blocks_[b][i];
        T value(entry.value);
        if constexpr (kIsComplex<T>) value.imag(imaginary_[b][i]);
        if (!visit(entry.row, entry.column, value)) return;
      }
      std::vector<MatrixEntry>().swap(blocks_[b]);
      if constexpr (kIsComplex<T>) std::vector<double>().swap(imaginary_[b]);
    }
  }

 private:
  std::vector<std::vector<MatrixEntry>> blocks_;
  std::vector<std::vector<double>> imaginary_;
};

// Returns column_start of the matrix including mirrored entries; duplicates count separately.
template <class Entries>
std::vector<int64_t> CountColumns(const MatrixMarketHeader& header, const Entries& entries,
                                  StopCounter& counter) {
  std::vector<int64_t> start(header.columns + 1);
  const bool mirrored = header.symmetry != Symmetry::kGeneral;
  entries.ForPositions([&](int32_t row, int32_t column) {
    ++start[column + 1];
    if (mirrored && row != column) ++start[row + 1];
    return !counter.Stops();
  });
  std::partial_sum(start.begin(), start.end(), start.begin());
  return start;
}

int64_t Expanded(const MatrixMarketHeader& header) {
  return header.symmetry == Symmetry::kGeneral ? header.entries : 2 * header.entries;
}

// Stores an entry of the assembled matrix. T is double or std::complex<double>.
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

// Value of the entry mirrored across the diagonal.
template <class T>
T Mirrored(Symmetry symmetry, T value) {
  if constexpr (kIsComplex<T>) {
    return {MirrorSign(symmetry) * value.real(), ImaginaryMirrorSign(symmetry) * value.imag()};
  } else {
    return MirrorSign(symmetry) * value;
  }
}

// Moves every entry to its column, in file order, and its line to the same place of the map.
template <class T, class Entries>
void Scatter(const MatrixMarketHeader& header, Entries entries, SparseMatrix* matrix,
             ValueMapData* map, StopCounter& counter) {
  std::vector<int64_t> next(matrix->column_start.begin(), matrix->column_start.end() - 1);
  const Symmetry symmetry = header.symmetry;
  const bool mirrored = symmetry != Symmetry::kGeneral;
  const auto rows = static_cast<uint64_t>(header.rows);
  uint32_t line = 0;
  const auto note = [&](int64_t at, uint32_t source) {
    if (map != nullptr) map->source[at] = source;
  };
  entries.template Drain<T>([&](int32_t row, int32_t column, T value) {
    const bool across = mirrored && row != column;
    const bool real = symmetry == Symmetry::kHermitian && row == column;
    if (map != nullptr) {
      const uint64_t place = static_cast<uint64_t>(column) * rows + static_cast<uint64_t>(row);
      map->digest += SplitMix(SplitMix(place) + line);
    }
    note(next[column], real ? line | ValueMap::kReal : line);
    Put(next[column]++, row, value, matrix);
    if (across) {
      note(next[row], line | ValueMap::kMirrored);
      Put(next[row]++, column, Mirrored(symmetry, value), matrix);
    }
    ++line;
    return !counter.Stops();
  });
}

// `source` uses what would otherwise be padding.
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

// Bytes that SortColumn needs for the longest column, and inplace_merge for half of it.
template <class T>
size_t SortBytes(const SparseMatrix& matrix, StopCounter& counter) {
  int64_t longest = 0;
  for (int64_t j = 0; j < matrix.columns; ++j) {
    const int64_t begin = matrix.column_start[j];
    const int64_t end = matrix.column_start[j + 1];
    if (counter.Stops(1 + end - begin)) break;
    if (end - begin > longest && !IsSorted(matrix, begin, end)) longest = end - begin;
  }
  return (longest + (longest + 1) / 2) * sizeof(Sortable<T>);
}

// Sorts by row, keeping the order of entries with the same row. Sorts runs, then merges them, and
// polls in between. The order is undefined once the counter stops.
template <class T>
void SortByRow(std::vector<Sortable<T>>& entries, StopCounter& counter) {
  constexpr ptrdiff_t kRun = 1 << 15;
  constexpr int64_t kStepsOfEntry = 16;  // per entry of a sorted run
  const auto by_row = [](const auto& a, const auto& b) { return a.row < b.row; };
  const ptrdiff_t size = std::ssize(entries);
  const auto at = [&](ptrdiff_t i) { return entries.begin() + std::min(i, size); };
  for (ptrdiff_t i = 0; i < size; i += kRun) {
    if (counter.Stops(kStepsOfEntry * kRun)) return;
    std::stable_sort(at(i), at(i + kRun), by_row);
  }
  for (ptrdiff_t width = kRun; width < size; width *= 2) {
    for (ptrdiff_t i = 0; i + width < size; i += 2 * width) {
      if (counter.Stops(2 * width)) return;
      std::inplace_merge(at(i), at(i + width), at(i + 2 * width), by_row);
    }
  }
}

// Sorts one column by row, keeping the order of entries with the same row. Files sorted by row or
// by column need no sorting, so `scratch` is rarely used.
template <class T>
void SortColumn(int64_t begin, int64_t end, SparseMatrix* matrix, ValueMapData* map,
                std::vector<Sortable<T>>* scratch, StopCounter& counter) {
  if (IsSorted(*matrix, begin, end)) return;
  scratch->clear();
  if (scratch->capacity() < static_cast<size_t>(end - begin)) {
    std::vector<Sortable<T>>().swap(*scratch);  // Frees first; reserve() would hold both.
    scratch->reserve(end - begin);
  }
  for (int64_t i = begin; i < end; ++i) {
    scratch->push_back({matrix->row[i], map == nullptr ? 0 : map->source[i], matrix->Value<T>(i)});
  }
  SortByRow(*scratch, counter);
  for (int64_t i = begin; i < end; ++i) {
    const Sortable<T>& entry = (*scratch)[i - begin];
    Put(i, entry.row, entry.value, matrix);
    if (map != nullptr) map->source[i] = entry.source;
  }
}

// Sorts every column, sums duplicates and closes the gaps that they leave. The map's sources stay
// where they are.
template <class T>
absl::Status SortAndSum(SparseMatrix* matrix, ValueMapData* map, StopCounter& counter) {
  std::vector<Sortable<T>> scratch;
  int64_t out = 0;
  int64_t begin = 0;
  for (int64_t j = 0; j < matrix->columns; ++j) {
    const int64_t end = matrix->column_start[j + 1];
    if (counter.Stops(1 + end - begin)) return counter.status();
    SortColumn<T>(begin, end, matrix, map, &scratch, counter);
    if (counter.Stops()) return counter.status();
    for (int64_t i = begin; i < end;) {
      const int32_t row = matrix->row[i];
      if (map != nullptr) map->start.push_back(static_cast<int32_t>(i));
      T sum = matrix->Value<T>(i);
      for (++i; i < end && matrix->row[i] == row; ++i) sum += matrix->Value<T>(i);
      if (!IsFinite(sum)) {
        return absl::InvalidArgumentError(
            absl::StrCat("the entries given for row ", row + 1, ", column ", j + 1,
                         " (1-based) add up to a value beyond the range of float64"));
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

void StartMap(const MatrixMarketHeader& header, int64_t sources, ValueMapData* map) {
  map->digest = SplitMix(static_cast<uint64_t>(header.rows));
  map->shape.lines = header.entries;
  map->shape.sources = sources;
  map->shape.mirror_sign = MirrorSign(header.symmetry);
  map->shape.imaginary_mirror_sign = ImaginaryMirrorSign(header.symmetry);
  map->source.resize(sources);
  map->start.reserve(sources + 1);
}

// AssembleSparse() for values of type T.
template <class T, class Entries>
absl::StatusOr<SparseMatrix> Assemble(const MatrixMarketHeader& header, Entries entries,
                                      absl::FunctionRef<absl::Status(size_t)> claim,
                                      StopRequested stop, ValueMapData* map) {
  StopCounter counter(stop);
  SparseMatrix matrix;
  matrix.rows = header.rows;
  matrix.columns = header.columns;
  matrix.column_start = CountColumns(header, entries, counter);
  if (absl::Status status = counter.status(); !status.ok()) return status;
  matrix.row.resize(matrix.column_start.back());
  matrix.value.resize(matrix.column_start.back());
  if constexpr (kIsComplex<T>) matrix.imaginary.resize(matrix.column_start.back());
  if (map != nullptr) StartMap(header, matrix.nonzeros(), map);
  const size_t freed = entries.bytes();
  Scatter<T>(header, std::move(entries), &matrix, map, counter);
  const size_t sort = SortBytes<T>(matrix, counter);
  if (absl::Status status = counter.status(); !status.ok()) return status;
  if (sort > freed) {
    if (absl::Status status = claim(sort - freed); !status.ok()) return status;
  }
  if (absl::Status status = SortAndSum<T>(&matrix, map, counter); !status.ok()) return status;
  if (map != nullptr) {
    map->start.push_back(static_cast<int32_t>(map->source.size()));
    map->shape.elements = matrix.nonzeros();
  }
  return matrix;
}

}  // namespace

size_t ValueMapBytes(const MatrixMarketHeader& header) {
  return (2 * static_cast<size_t>(Expanded(header)) + 1) * sizeof(int32_t);
}

absl::StatusOr<SparseMatrix> AssembleSparse(const MatrixMarketHeader& header,
                                            std::vector<std::vector<MatrixEntry>> blocks,
                                            std::vector<std::vector<double>> imaginary,
                                            absl::FunctionRef<absl::Status(size_t)> claim,
                                            StopRequested stop, ValueMapData* map) {
  EntryBlocks entries(std::move(blocks), std::move(imaginary));
  if (header.complex()) {
    return Assemble<std::complex<double>>(header, std::move(entries), claim, stop, map);
  }
  return Assemble<double>(header, std::move(entries), claim, stop, map);
}

absl::StatusOr<SparseMatrix> AssembleSparse(const MatrixMarketHeader& header, EntryPieces entries,
                                            absl::FunctionRef<absl::Status(size_t)> claim,
                                            StopRequested stop, ValueMapData* map) {
  if (header.complex()) {
    return Assemble<std::complex<double>>(header, std::move(entries), claim, stop, map);
  }
  return Assemble<double>(header, std::move(entries), claim, stop, map);
}

size_t AssembledBytes(const MatrixMarketHeader& header) {
  const size_t entry = sizeof(int32_t) + (header.complex() ? 2 : 1) * sizeof(double);
  // column_start, and the position of the next entry of each column.
  return static_cast<size_t>(Expanded(header)) * entry +
         2 * static_cast<size_t>(header.columns + 1) * sizeof(int64_t);
}

}  // namespace crout
