// SPDX-License-Identifier: Apache-2.0

// The bytes of a MatrixSource or a MatrixChange, and their description in the contract.
#ifndef CROUT_CLIENT_CPP_PAYLOAD_H_
#define CROUT_CLIENT_CPP_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/message_writer.h"
#include "crout/batch.h"
#include "crout/v1/factorization_service.pb.h"

namespace crout {
inline namespace api {
namespace internal {

// The columns or rows of a matrix in memory, at a constant distance.
struct StridedVectors {
  const std::byte* begin = nullptr;
  int64_t count = 0;   // number of columns (rows)
  int64_t length = 0;  // bytes of one column (row)
  int64_t stride = 0;  // bytes between the starts of two columns (rows); at least `length`
};

// A matrix in the contract's terms, and its bytes.
struct Payload {
  v1::MatrixSpec spec;
  absl::Status status;  // error that calls return
  // One of the following has the bytes; all others have their default values.
  std::vector<absl::Span<const std::byte>> bytes;  // to be concatenated
  // Memory of `bytes` in a copy; otherwise null.
  std::shared_ptr<const std::vector<std::byte>> owned;
  StridedVectors vectors;
  std::string path;   // path of a file
  int64_t ones = -1;  // number of bytes of ones
  const BatchSource* batch = nullptr;

  // Whether each Open() gives the same bytes. False for a pipe.
  bool repeatable() const;
  // Starts a pass over the bytes. Opens the file, if there is one.
  absl::StatusOr<std::unique_ptr<ChunkReader>> Open() const;
  // Returns a payload that owns a copy of the bytes. A file is not copied.
  absl::StatusOr<Payload> Copy() const;
};

// A change of a matrix, and its bytes.
struct ChangePayload {
  v1::MatrixChange spec;
  absl::Status status;  // error that the call returns
  std::string data;
};

// A batch, or right-hand sides for members of a batch, in the contract's terms.
class BatchPayload {
 public:
  explicit BatchPayload(const BatchSource& source) : source_(source) {}

  // Declare the batch and the right-hand sides. INVALID_ARGUMENT as documented at BatchSource.
  absl::StatusOr<v1::BatchSpec> Batch() const;
  absl::StatusOr<v1::BatchRhsSpec> BatchRhs() const;
  // Starts a pass over the bytes of a valid batch or, with `sides`, of valid right-hand sides in
  // ascending order of their members.
  std::unique_ptr<ChunkReader> Open(bool sides) const;
  // Passes the solutions in the data of a reply to `x`, which has received BeginBatch(), and
  // returns the figures of the systems; both in the order in which the sides were added.
  absl::StatusOr<SystemFigures> Deliver(absl::Span<const std::byte> data, MatrixSink* x) const;

 private:
  class Reader;

  // Indices of the matrices in ascending order of their members. INVALID_ARGUMENT for two
  // right-hand sides for one member.
  absl::StatusOr<std::vector<size_t>> Order() const;
  // Bytes from the first matrix to the end of the last, in this order.
  int64_t ValueBytes(const std::vector<size_t>& order) const;
  int64_t Element() const { return static_cast<int64_t>(ElementSize(source_.dtype_)); }

  const BatchSource& source_;
};

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_PAYLOAD_H_
