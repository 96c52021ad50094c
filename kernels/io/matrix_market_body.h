// Parsed segments of a Matrix Market file, put back into file order.
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

// Segments come in any order and are judged in file order, so that the error reported is the
// first of the file, with its line, however the work was spread. Not thread-safe.
class MatrixMarketBody {
 public:
  // `header_lines`: lines before those of segment 0.
  void Start(const MatrixMarketHeader& header, int64_t header_lines) {
    header_ = header;
    lines_ = header_lines;
  }

  // Segment number `index`, counted from 0, each once.
  void Add(int64_t index, ParsedSegment segment);

  // The file cannot be read from segment `index` on.
  void AddError(int64_t index, absl::Status error);

  // Nothing more is judged, whatever was added: there is no memory to go on, say.
  void Fail(absl::Status error);

  // The first error among the segments 0, 1, ... that have all been added. Once it is one it stays.
  const absl::Status& status() const { return status_; }

  // Every segment was added: status(), or what is wrong with their sum.
  absl::Status Finish() const;

  // Bytes held.
  size_t bytes() const { return bytes_; }

  // The entries in file order; one of the two is empty.
  std::vector<std::vector<MatrixEntry>> TakeEntries() { return std::move(entries_); }
  std::vector<std::vector<double>> TakeValues() { return std::move(values_); }
  // Of a `complex` file the imaginary parts, in the blocks of the entries or of the values.
  std::vector<std::vector<double>> TakeImaginary() { return std::move(imaginary_); }

 private:
  struct Pending {
    ParsedSegment segment;
    absl::Status error;
  };

  void AddPending(int64_t index, Pending pending);
  void Judge(Pending pending);
  // The first diagonal value of an `array` in `segment`, the next to judge, that is not real though
  // the matrix is hermitian.
  std::optional<int64_t> FindNotReal(const ParsedSegment& segment);
  void Clear();
  absl::Status Explain(const FaultyLine& faulty) const;

  MatrixMarketHeader header_;
  std::map<int64_t, Pending> pending_;  // Those that wait for an earlier one.
  int64_t next_ = 0;                    // The segment to judge next.
  int64_t lines_ = 0;                   // Lines before it, ...
  int64_t count_ = 0;                   // ... and entries.
  int64_t diagonal_ = 0;                // Diagonal values that were looked at.
  size_t bytes_ = 0;
  absl::Status status_;
  std::vector<std::vector<MatrixEntry>> entries_;
  std::vector<std::vector<double>> values_;
  std::vector<std::vector<double>> imaginary_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_BODY_H_
