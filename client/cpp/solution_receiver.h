// SPDX-License-Identifier: Apache-2.0

// Receives the dense matrix of a response stream and validates it.
#ifndef CROUT_CLIENT_CPP_SOLUTION_RECEIVER_H_
#define CROUT_CLIENT_CPP_SOLUTION_RECEIVER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "crout/matrix_sink.h"
#include "crout/v1/matrix.pb.h"

namespace crout::client {

// Passes the matrix to a sink, which must outlive this object. INTERNAL if the server sends no
// header, two headers, or not the number of bytes that its header declares; otherwise the errors of
// the sink.
class SolutionReceiver {
 public:
  explicit SolutionReceiver(MatrixSink* sink) : sink_(sink) {}

  absl::Status OnHeader(const v1::DenseSpec& spec);
  absl::Status OnData(absl::Span<const std::byte> bytes);
  // Whether a header has arrived.
  bool begun() const { return begun_; }
  // Called after the last message of a successful call.
  absl::Status Finish() const;

 private:
  MatrixSink* const sink_;
  bool begun_ = false;
  int64_t missing_ = 0;  // bytes that have not arrived
};

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_SOLUTION_RECEIVER_H_
