// SPDX-License-Identifier: Apache-2.0

// Reads a Matrix Market file that arrives in pieces, gzipped or not, on the threads of a pool.
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_READER_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_READER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/io/matrix_market.h"
#include "kernels/io/matrix_reader.h"
#include "kernels/io/memory_grant.h"
#include "kernels/io/sparse_matrix.h"
#include "kernels/util/thread_pool.h"

namespace crout {

class MatrixMarketPipeline;

// Accepts:
// - formats `coordinate` and `array`;
// - fields real, integer, complex, and pattern (every value is 1; values in the lines are ignored);
// - symmetries general, symmetric, skew-symmetric, and hermitian (only complex, with a real
//   diagonal);
// - keywords in any case, comments (lines that start with %) and blank lines anywhere after the
//   banner, LF and CRLF, blanks and tabs, a leading +, a last line without newline;
// - entries in any order, from either triangle of symmetric files. Duplicates are summed.
//
// Errors name the line if there is one. RESOURCE_EXHAUSTED: the file needs more memory than
// MatrixMarketLimits allows. INVALID_ARGUMENT: all other faults, including NaN, Inf and values that
// overflow float64 (with row and column), and gzip streams that are damaged, truncated or expand
// too far.
//
// The result has the same bits for any pieces and any number of threads, and the error is the
// file's first. Exceptions are the gzip ratio and refused memory, which are checked as bytes
// arrive. Memory grows with the bytes received: sizes declared in the file claim none, except 16
// bytes per column in Finish().
//
// With a grant, memory_bytes() and the memory that steps need temporarily never exceed what was
// taken from the grant. Each step first takes its upper bound and then gives back the rest. Text
// waits, compressed or unparsed, until its background step has memory. If the grant refuses,
// everything is dropped and the refusal becomes the reader's error. A reader itself costs about 4
// KiB in addition.
//
// One caller at a time may use the reader, except for header() and memory_bytes().
class MatrixMarketReader final : public MatrixReader {
 public:
  // `pool` must outlive the reader. The costs of its tasks are bytes of text. Without a pool, all
  // work runs on the caller's thread. Without a grant, memory is taken as needed.
  MatrixMarketReader(const MatrixMarketLimits& limits, ThreadPool* pool,
                     std::shared_ptr<MemoryGrant> grant = nullptr);

  // Frees and gives back the memory held, without waiting for running tasks. They end after their
  // segment and then give back its memory.
  ~MatrixMarketReader() override;
  MatrixMarketReader(const MatrixMarketReader&) = delete;  // The pool's tasks share its state.
  MatrixMarketReader& operator=(const MatrixMarketReader&) = delete;

  void SetAccount(std::string_view account) override;

  bool TryReserve(size_t bytes) override;
  absl::Status Reserve(size_t bytes) override;

  // Copies the bytes. The pool decompresses and parses them.
  absl::Status Append(std::span<const char> bytes) override;

  // Waits for the pool and takes part in its work, so it can also be called on a thread of the
  // pool.
  using MatrixReader::Finish;
  absl::Status Finish(StopRequested stop) override;

  // Available once the size line was read. For gzip the pool reads it, some time after Append().
  std::optional<MatrixMarketHeader> header() const override;

  // Bytes held: text, compressed text, entries and result. At most the bytes received plus
  // PeakBytes() of the header. For gzip also the segments inflated ahead: eight, and one per
  // thread.
  size_t memory_bytes() const;

  SparseMatrix TakeSparse() override;
  ValueMapData TakeValueMap() override { return std::exchange(map_, ValueMapData()); }
  std::vector<double> TakeDense() override;
  std::vector<double> TakeDenseImaginary() override;

 private:
  const std::shared_ptr<MatrixMarketPipeline> pipeline_;
  const bool build_value_map_;
  SparseMatrix sparse_;
  ValueMapData map_;
  std::vector<double> dense_;
  std::vector<double> dense_imaginary_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_READER_H_
