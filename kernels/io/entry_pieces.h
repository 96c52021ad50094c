// SPDX-License-Identifier: Apache-2.0

// Entries of a sparse matrix as received in binary form, not yet sorted.
#ifndef CROUT_KERNELS_IO_ENTRY_PIECES_H_
#define CROUT_KERNELS_IO_ENTRY_PIECES_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include "kernels/dtype.h"
#include "kernels/io/piece_list.h"
#include "kernels/scalar.h"

namespace crout {

// Holds the column, the value and the row of each entry. For compressed rows, `row` instead holds
// the offset of each row and the end of the last row. All indices are 0-based.
struct EntryPieces {
  using Values = std::variant<PieceList<float>, PieceList<double>, PieceList<std::complex<float>>,
                              PieceList<std::complex<double>>>;

  // Prepares for `entries` entries with values of type `dtype`.
  EntryPieces(DType dtype, bool compressed_rows, int64_t rows, int64_t entries)
      : compressed_rows(compressed_rows),
        row(compressed_rows ? rows + 1 : entries),
        column(entries),
        value(DispatchDType(dtype, [&](auto tag) -> Values {
          return PieceList<typename decltype(tag)::type>(entries);
        })) {}

  size_t bytes() const {
    return row.bytes() + column.bytes() +
           std::visit([](const auto& list) { return list.bytes(); }, value);
  }

  // Row of an entry, given its number.
  int64_t RowOf(int64_t entry) const {
    if (!compressed_rows) return row[entry];
    PieceList<int32_t>::Reader starts(row);
    starts.Next();
    int64_t i = 0;
    while (starts.Next() <= entry) ++i;
    return i;
  }

  // Calls visit(row, column) for every entry in order of arrival, while it returns true.
  template <class Visit>
  void ForPositions(const Visit& visit) const {
    PieceList<int32_t>::Reader rows(row), columns(column);
    ForRows(rows, column.size(), [&](int32_t i) { return visit(i, columns.Next()); });
  }

  // Calls visit(row, column, value) for every entry in order of arrival, and frees the entries. T
  // is double for real values and std::complex<double> for complex ones.
  template <class T, class Visit>
  void Drain(const Visit& visit) {
    const int64_t entries = column.size();
    PieceList<int32_t>::Reader rows(std::move(row)), columns(std::move(column));
    std::visit(
        [&]<class Source>(PieceList<Source>& list) {
          typename PieceList<Source>::Reader values(std::move(list));
          if constexpr (kIsComplex<Source> == kIsComplex<T>) {
            ForRows(rows, entries, [&](int32_t i) {
              const int32_t j = columns.Next();
              return visit(i, j, static_cast<T>(values.Next()));
            });
          }
        },
        value);
  }

  bool compressed_rows;
  PieceList<int32_t> row;
  PieceList<int32_t> column;
  Values value;

 private:
  // Calls visit(row) for each of `entries` entries, while it returns true.
  template <class Visit>
  void ForRows(PieceList<int32_t>::Reader& rows, int64_t entries, const Visit& visit) const {
    if (!compressed_rows) {
      for (int64_t e = 0; e < entries && visit(rows.Next()); ++e) {
      }
      return;
    }
    int64_t e = entries == 0 ? 0 : rows.Next();
    for (int32_t i = 0; e < entries; ++i) {
      for (const int64_t end = rows.Next(); e < end; ++e) {
        if (!visit(i)) return;
      }
    }
  }
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_ENTRY_PIECES_H_
