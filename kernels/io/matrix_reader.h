// SPDX-License-Identifier: Apache-2.0

// Interface for reading a matrix that arrives as bytes in pieces.
#ifndef CROUT_KERNELS_IO_MATRIX_READER_H_
#define CROUT_KERNELS_IO_MATRIX_READER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kernels/io/matrix_market.h"
#include "kernels/io/sparse_matrix.h"
#include "kernels/stop_requested.h"

namespace crout {

// Takes memory from a MemoryGrant before it is used. One caller at a time may use a reader, except
// for header().
class MatrixReader {
 public:
  virtual ~MatrixReader() = default;

  // Sets the account of the work on the threads of a pool, if the reader uses one. Call it before
  // the first Append(). May throw std::bad_alloc.
  virtual void SetAccount(std::string_view /*account*/) {}

  // Takes the memory that Append() of `bytes` bytes needs. TryReserve() does not block; if it
  // returns false, call Reserve(), whose error is final. Append() does this itself if the caller
  // has not.
  virtual bool TryReserve(size_t bytes) = 0;
  virtual absl::Status Reserve(size_t bytes) = 0;

  // Adds the next bytes, any number. Fast enough for a thread that serves calls. INVALID_ARGUMENT:
  // the bytes are not a valid matrix. RESOURCE_EXHAUSTED: there is no memory for it. An error may
  // refer to earlier bytes. It is final, and further bytes are not needed.
  virtual absl::Status Append(std::span<const char> bytes) = 0;

  // Ends the input. Call it once. May block. CANCELLED by `stop`.
  virtual absl::Status Finish(StopRequested stop) = 0;
  absl::Status Finish() {
    return Finish([] { return false; });
  }

  // Description of the matrix in Matrix Market terms. The result is TakeSparse() if `coordinate` is
  // set, otherwise TakeDense(). Available after Finish() at the latest.
  virtual std::optional<MatrixMarketHeader> header() const = 0;

  // Call once, after Finish() returned OK. The caller gives the result's bytes back to the grant.
  virtual SparseMatrix TakeSparse() = 0;
  // The matrix's map, if requested and if the number of entries allows one; otherwise empty.
  // TakeSparse() hands over the memory of both.
  virtual ValueMapData TakeValueMap() = 0;
  // rows * columns values, column-major, lda = rows. For complex matrices TakeDense() has the real
  // parts and TakeDenseImaginary() the imaginary parts; otherwise the latter is empty.
  virtual std::vector<double> TakeDense() = 0;
  virtual std::vector<double> TakeDenseImaginary() = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_READER_H_
