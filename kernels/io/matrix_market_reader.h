// Reads a Matrix Market file that arrives in pieces, gzipped or not, on the threads of a pool.
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_READER_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_READER_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/io/matrix_market.h"
#include "kernels/io/sparse_matrix.h"
#include "kernels/util/thread_pool.h"

namespace crout {

class MatrixMarketPipeline;

// Accepted: `coordinate` and `array`; real, integer, pattern (every value is 1, and one that
// the line gives is ignored); general, symmetric, skew-symmetric; words in any case; lines that
// start with % as comments and blank lines, anywhere after the banner; LF and CRLF; blanks and
// tabs; a leading +; a last line without its newline; entries in any order, of symmetric files from
// either triangle. Duplicates add up.
//
// Refused, with the line where there is one: UNIMPLEMENTED `complex` and `hermitian`;
// RESOURCE_EXHAUSTED more memory than MatrixMarketLimits allows; INVALID_ARGUMENT all else that
// is wrong, NaN and Inf and values that overflow float64 included (with row and column), and gzip
// streams that are damaged, cut off or expand too far.
//
// Whatever the pieces and threads, the result has the same bits, and the error is the first of
// the file (but for the gzip ratio, which is judged as the bytes come). Memory grows with what
// arrived: sizes that the file declares claim none, but for 16 bytes a column in Finish().
//
// Append, Finish and Take* are for one caller at a time; header() and memory_bytes() for any.
class MatrixMarketReader {
 public:
  // `pool` outlives the reader. Without one everything is done in the caller's thread.
  MatrixMarketReader(const MatrixMarketLimits& limits, ThreadPool* pool);

  // Frees what it holds, without waiting for tasks that run: they end with their segment.
  ~MatrixMarketReader();
  MatrixMarketReader(const MatrixMarketReader&) = delete;  // The pool's tasks share its state.
  MatrixMarketReader& operator=(const MatrixMarketReader&) = delete;

  // The next bytes of the file, any number. Copies them and leaves parsing and decompression to
  // the pool: fit for a thread that serves calls. An error may concern bytes given before; it is
  // final, and nothing more need be given.
  absl::Status Append(std::span<const char> bytes);

  // The end of the file, once. Waits for the pool and takes part in the work, so that it may be
  // called on a thread of the pool too.
  absl::Status Finish();

  // Known once the size line was read; for gzip the pool reads it, some time after Append.
  std::optional<MatrixMarketHeader> header() const;

  // Bytes held: text, compressed text and entries. At most what was given, plus PeakBytes() of the
  // header, plus for gzip the segments that are inflated ahead: eight and one for each thread.
  size_t memory_bytes() const;

  // After Finish() returned OK, once. A `coordinate` file:
  SparseMatrix TakeSparse();
  // An `array` file: rows times columns values, column-major, lda = rows.
  std::vector<double> TakeDense();

 private:
  const std::shared_ptr<MatrixMarketPipeline> pipeline_;
  std::atomic<size_t> result_bytes_ = 0;
  SparseMatrix sparse_;
  std::vector<double> dense_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_READER_H_
