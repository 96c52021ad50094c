// A matrix that arrives as bytes, in pieces, and is known when all of them have come.
#ifndef CROUT_KERNELS_IO_MATRIX_READER_H_
#define CROUT_KERNELS_IO_MATRIX_READER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/io/matrix_market.h"
#include "kernels/io/sparse_matrix.h"
#include "kernels/stop_requested.h"

namespace crout {

// What is read is taken of a MemoryGrant before it is held. All but header() are for one caller at
// a time.
class MatrixReader {
 public:
  virtual ~MatrixReader() = default;

  // Takes what Append of `bytes` bytes needs. TryReserve() does not block, and is false where
  // Reserve() must be tried, whose error is final. Append() does this itself where it was not done.
  virtual bool TryReserve(size_t bytes) = 0;
  virtual absl::Status Reserve(size_t bytes) = 0;

  // The next bytes, any number: fit for a thread that serves calls. INVALID_ARGUMENT where they are
  // no such matrix, RESOURCE_EXHAUSTED where there is no memory for it; an error may concern bytes
  // given before, is final, and nothing more need be given.
  virtual absl::Status Append(std::span<const char> bytes) = 0;

  // The end of the bytes, once. May block. CANCELLED by `stop`.
  virtual absl::Status Finish(StopRequested stop) = 0;
  absl::Status Finish() {
    return Finish([] { return false; });
  }

  // What is read, in a text's terms: where this says `coordinate`, TakeSparse() has it, else
  // TakeDense(). Known after Finish() at the latest.
  virtual std::optional<MatrixMarketHeader> header() const = 0;

  // After Finish() returned OK, once. The caller gives the bytes that the result holds back to the
  // grant.
  virtual SparseMatrix TakeSparse() = 0;
  // Its map, where one was asked for and there are no more entries than a map may have; else empty.
  // Goes with the matrix: one of them is handed over for both.
  virtual LineMap TakeLineMap() = 0;
  // Rows times columns values, column-major, lda = rows; of complex ones the real parts, and the
  // imaginary parts likewise, else none.
  virtual std::vector<double> TakeDense() = 0;
  virtual std::vector<double> TakeDenseImaginary() = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_READER_H_
