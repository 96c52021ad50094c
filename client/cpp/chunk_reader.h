// How the bytes of a matrix are read while they are sent.
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

  // Bytes in all; -1 when not known (a pipe).
  virtual int64_t size() const = 0;

  // The next 1 to `limit` bytes; an empty slice at the end. Slices may refer to memory of the
  // source: those are counted in `borrowed`. `while_silent` is called time and again while a pipe
  // gives nothing; its error is returned.
  virtual absl::StatusOr<grpc::Slice> Next(size_t limit, BorrowCount* borrowed,
                                           absl::FunctionRef<absl::Status()> while_silent) = 0;
};

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_CHUNK_READER_H_
