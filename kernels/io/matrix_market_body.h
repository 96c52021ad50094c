// SPDX-License-Identifier: Apache-2.0

// Collects the parsed segments of a Matrix Market file in file order.
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_BODY_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_BODY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/io/matrix_market.h"
#include "kernels/io/matrix_market_entries.h"

namespace crout {

// Accepts segments in any order and checks them in file order. The reported error is therefore the
// file's first, with its line, for any distribution of the work. Not thread-safe.
class MatrixMarketBody {
 public:
  // `header_lines` is the number of lines before segment 0.
  void Start(const MatrixMarketHeader& header, int64_t header_lines) {
    header_ = header;
    lines_ = header_lines;
  }

  // Adds segment number `index`, counted from 0; each exactly once.
  void Add(int64_t index, ParsedSegment segment);

  // Reports that the file cannot be read from segment `index` on.
  void AddError(int64_t index, absl::Status error);

  // Stops all further checks with `error`, for example if memory is exhausted.
  void Fail(absl::Status error);

  // First error among the segments 0, 1, ... received without a gap. Errors are final.
  const absl::Status& status() const { return status_; }

  // Call after all segments were added. Returns status(), or an error if entries are missing.
  absl::Status Finish() const;

  // Bytes held.
  size_t bytes() const { return bytes_; }

  // Entries in file order. One of the two is empty.
  std::vector<std::vector<MatrixEntry>> TakeEntries() { return std::move(entries_); }
  std::vector<std::vector<double>> TakeValues() { return std::move(values_); }
  // Imaginary parts of a `complex` file, in the same blocks as the entries or values.
  std::vector<std::vector<double>> TakeImaginary() { return std::move(imaginary_); }

 private:
  struct Pending {
    ParsedSegment segment;
    absl::Status error;
  };

  void AddPending(int64_t index, Pending pending);
  // Checks the next segment in file order and keeps its entries.
  void Judge(Pending pending);
  // Returns the index of the first diagonal value in `segment` that is not real although the matrix
  // is hermitian. For `array` files. `segment` is the next one to check.
  std::optional<int64_t> FindNotReal(const ParsedSegment& segment);
  void Clear();
  // Returns the error for the first faulty line, with its position in the file.
  absl::Status Explain(const FaultyLine& faulty) const;

  MatrixMarketHeader header_;
  std::map<int64_t, Pending> pending_;  // Segments that wait for an earlier one.
  int64_t next_ = 0;                    // The next segment to check.
  int64_t lines_ = 0;                   // Lines before segment next_.
  int64_t count_ = 0;                   // Entries before segment next_.
  int64_t diagonal_ = 0;                // Diagonal values checked.
  size_t bytes_ = 0;
  absl::Status status_;
  std::vector<std::vector<MatrixEntry>> entries_;
  std::vector<std::vector<double>> values_;
  std::vector<std::vector<double>> imaginary_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_BODY_H_
