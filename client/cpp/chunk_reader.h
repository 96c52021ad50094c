// SPDX-License-Identifier: Apache-2.0

// Interface for reading the bytes of a payload while they are sent.
#ifndef CROUT_CLIENT_CPP_CHUNK_READER_H_
#define CROUT_CLIENT_CPP_CHUNK_READER_H_

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/wire.h"

namespace crout::client {

// One pass over the bytes of a payload.
class ChunkReader {
 public:
  virtual ~ChunkReader() = default;

  // Total bytes; -1 if unknown (a pipe).
  virtual int64_t size() const = 0;

  // Returns the next 1 to `limit` bytes; an empty slice at the end. Slices may refer to the memory
  // of the source; *borrowed counts these slices. While a pipe has no data, calls `while_silent`
  // repeatedly and returns its first error.
  virtual absl::StatusOr<grpc::Slice> Next(size_t limit, BorrowCount* borrowed,
                                           absl::FunctionRef<absl::Status()> while_silent) = 0;
};

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_CHUNK_READER_H_
