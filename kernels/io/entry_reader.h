// SPDX-License-Identifier: Apache-2.0

// Reads a sparse matrix that arrives in binary form: coordinates or compressed rows.
#ifndef CROUT_KERNELS_IO_ENTRY_READER_H_
#define CROUT_KERNELS_IO_ENTRY_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "kernels/io/entry_pieces.h"
#include "kernels/io/matrix_reader.h"
#include "kernels/io/memory_grant.h"

namespace crout {

// Binary format: little-endian, without padding, indices from 0. Coordinates: all row indices, then
// all column indices, then all values. Compressed rows: rows + 1 offsets (non-decreasing, the first
// 0, the last `entries`), then all column indices, then all values.
struct EntryFormat {
  DType dtype = DType::kFloat64;
  bool compressed_rows = false;
  int index_bytes = 4;  // size of an index or offset: 4 or 8
  int64_t rows = 0;     // 0 to 2^31 - 1, like the next two
  int64_t columns = 0;
  int64_t entries = 0;

  int64_t bytes() const {
    const int64_t indices = compressed_rows ? rows + 1 + entries : 2 * entries;
    return indices * index_bytes + entries * static_cast<int64_t>(SizeOf(dtype));
  }
};

// Accepts entries in any order. Duplicates are summed in float64 in order of arrival, so the same
// bytes give the same bits. Memory grows with the bytes received, not with the declared size.
//
// INVALID_ARGUMENT, with the entry's number (from 0), and with its row and column if a value is
// wrong: an index beyond the matrix; an offset that decreases or a last offset other than
// `entries`; a value or sum that is not finite; more bytes than declared, or fewer in Finish().
class EntryReader final : public MatrixReader {
 public:
  // Without a grant, memory is taken as needed. `build_value_map`: TakeValueMap() returns which
  // entries make up each position.
  EntryReader(const EntryFormat& format, bool build_value_map, std::shared_ptr<MemoryGrant> grant);

  bool TryReserve(size_t bytes) override;
  absl::Status Reserve(size_t bytes) override;
  absl::Status Append(std::span<const char> bytes) override;
  using MatrixReader::Finish;
  absl::Status Finish(StopRequested stop) override;
  std::optional<MatrixMarketHeader> header() const override { return header_; }
  SparseMatrix TakeSparse() override;
  ValueMapData TakeValueMap() override { return std::exchange(map_, ValueMapData()); }
  std::vector<double> TakeDense() override { return {}; }
  std::vector<double> TakeDenseImaginary() override { return {}; }

 private:
  enum class Section : uint8_t { kRows, kColumns, kValues, kEnd };

  int64_t ItemsOf(Section section) const;
  int64_t ItemsReceived(Section section) const;
  size_t ItemBytes(Section section) const;
  // Advances to the next section that has items.
  void SkipEmptySections();
  // Takes `count` items of the current section, which has at least that many left.
  absl::Status TakeItems(const char* bytes, int64_t count);
  template <class Index>
  absl::Status TakeOffsets(const char* bytes, int64_t count);
  template <class Index>
  absl::Status TakeIndices(const char* bytes, int64_t count, bool are_rows);
  template <class T>
  absl::Status TakeValues(const char* bytes, int64_t count, PieceList<T>& to);

  // Upper bound on the additional memory that Append() of `bytes` bytes needs.
  size_t AppendBytes(size_t bytes) const;

  const EntryFormat format_;
  const MatrixMarketHeader header_;
  const bool build_value_map_;
  const std::shared_ptr<MemoryGrant> grant_;
  TakenMemory taken_;    // destroyed after the memory it accounts for
  size_t reserved_ = 0;  // part of taken_, for the next Append()

  Section section_ = Section::kRows;
  std::string partial_;  // bytes of an incomplete item
  int64_t last_offset_ = 0;
  EntryPieces entries_;

  SparseMatrix sparse_;
  ValueMapData map_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_ENTRY_READER_H_
