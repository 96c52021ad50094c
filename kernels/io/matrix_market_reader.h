// Reads a Matrix Market file that arrives in pieces, gzipped or not, on the threads of a pool.
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_READER_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_READER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
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

// Accepted: `coordinate` and `array`; real, integer, complex, pattern (every value is 1, and one
// that the line gives is ignored); general, symmetric, skew-symmetric, hermitian (with complex
// alone, the diagonal real); words in any case; lines that
// start with % as comments and blank lines, anywhere after the banner; LF and CRLF; blanks and
// tabs; a leading +; a last line without its newline; entries in any order, of symmetric files from
// either triangle. Duplicates add up.
//
// Refused, with the line where there is one: RESOURCE_EXHAUSTED more memory than MatrixMarketLimits
// allows; INVALID_ARGUMENT all else that is wrong, NaN and Inf and values that overflow float64
// included (with row and column), and gzip streams that are damaged, cut off or expand too far.
//
// Whatever the pieces and threads, the result has the same bits, and the error is the first of
// the file (but for the gzip ratio and refused memory, which are judged as the bytes come). Memory
// grows with what arrived: sizes that the file declares claim none, but for 16 bytes a column in
// Finish().
//
// With a grant, memory_bytes() never exceeds what was taken of it, nor does what a step needs on
// the way: each takes the most that it can come to first, and gives back the rest. Text that is
// inflated or parsed in the background so waits, compressed or unparsed, for its grant. Where that
// is refused, all is dropped and the refusal is the reader's error. Beside that a reader costs
// about 4 KiB.
//
// All but header() and memory_bytes() are for one caller at a time.
class MatrixMarketReader final : public MatrixReader {
 public:
  // `pool` outlives the reader. Without one everything is done in the caller's thread. Without a
  // grant memory is taken as needed.
  MatrixMarketReader(const MatrixMarketLimits& limits, ThreadPool* pool,
                     std::shared_ptr<MemoryGrant> grant = nullptr);

  // Frees and gives back what it holds, without waiting for tasks that run: they end with their
  // segment, and give back its memory then.
  ~MatrixMarketReader() override;
  MatrixMarketReader(const MatrixMarketReader&) = delete;  // The pool's tasks share its state.
  MatrixMarketReader& operator=(const MatrixMarketReader&) = delete;

  bool TryReserve(size_t bytes) override;
  absl::Status Reserve(size_t bytes) override;

  // Copies the bytes, and leaves parsing and decompression to the pool.
  absl::Status Append(std::span<const char> bytes) override;

  // Waits for the pool and takes part in the work, so that it may be called on a thread of the pool
  // too.
  using MatrixReader::Finish;
  absl::Status Finish(StopRequested stop) override;

  // Known once the size line was read; for gzip the pool reads it, some time after Append.
  std::optional<MatrixMarketHeader> header() const override;

  // Bytes held: text, compressed text, entries, the result. At most what was given, plus
  // PeakBytes() of the header, plus for gzip the segments that are inflated ahead: eight and one
  // for each thread.
  size_t memory_bytes() const;

  SparseMatrix TakeSparse() override;
  LineMap TakeLineMap() override { return std::exchange(map_, LineMap()); }
  std::vector<double> TakeDense() override;
  std::vector<double> TakeDenseImaginary() override;

 private:
  const std::shared_ptr<MatrixMarketPipeline> pipeline_;
  const bool map_lines_;
  SparseMatrix sparse_;
  LineMap map_;
  std::vector<double> dense_;
  std::vector<double> dense_imaginary_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_READER_H_
