// SPDX-License-Identifier: Apache-2.0

// Calls without the client library: any messages in any order.
#ifndef CROUT_TESTS_E2E_HARNESS_RAW_CALLS_H_
#define CROUT_TESTS_E2E_HARNESS_RAW_CALLS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cpp/grpc_status.h"
#include "crout/status.h"
#include "crout/v1/factorization_service.grpc.pb.h"

namespace crout::e2e {

// Returns the bytes of `values`.
template <class T>
std::string Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Returns the bytes of a diagonally dominant n x n float64 matrix.
inline std::string DominantBytes(int64_t n) {
  std::vector<double> a(static_cast<size_t>(n * n), 0.25);
  for (int64_t i = 0; i < n; ++i) a[static_cast<size_t>(i * (n + 1))] = static_cast<double>(n);
  return Bytes(a);
}

inline v1::MatrixSpec DenseSpecOf(int64_t rows, int64_t cols, v1::Dtype dtype = v1::DTYPE_FLOAT64) {
  v1::MatrixSpec spec;
  spec.mutable_dense()->set_rows(rows);
  spec.mutable_dense()->set_cols(cols);
  spec.mutable_dense()->set_dtype(dtype);
  return spec;
}

inline v1::MatrixSpec TextSpec(v1::Dtype dtype = v1::DTYPE_FLOAT64) {
  v1::MatrixSpec spec;
  spec.mutable_matrix_market()->set_dtype(dtype);
  return spec;
}

// Sends `messages`, closes the sending direction, and reads to the end of the call. Returns its
// status.
template <class Request, class Response>
absl::Status Exchange(std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> stream,
                      const std::vector<Request>& messages) {
  for (const Request& message : messages) {
    if (!stream->Write(message)) break;
  }
  stream->WritesDone();
  Response response;
  while (stream->Read(&response)) {
  }
  return internal::ToAbslStatus(stream->Finish());
}

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_HARNESS_RAW_CALLS_H_
