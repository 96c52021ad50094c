// SPDX-License-Identifier: Apache-2.0

// Decodes the declarations of matrices before their payloads arrive, and the fields that occur in
// several requests: types, handles, leases and cache options. `field` is the path of the field
// within the request, for messages.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_MATRIX_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_MATRIX_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/dtype.h"
#include "kernels/matrix.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/request.h"
#include "server/rpc/core.h"

namespace crout {

absl::StatusOr<DType> DecodeDtype(v1::Dtype dtype, DType unspecified, absl::string_view field);
absl::StatusOr<Op> DecodeOperation(v1::Operation operation, absl::string_view field);

// Values of flags that are true unless set to false.
template <class Message>
bool KeepsMatrix(const Message& message) {
  return !message.has_keep_matrix() || message.keep_matrix();
}
template <class Message>
bool Verifies(const Message& message) {
  return !message.has_verify() || message.verify();
}

// CheckPayload() checks the dimensions.
absl::StatusOr<MatrixSpec> DecodeMatrix(const v1::MatrixSpec& spec, absl::string_view field);

absl::StatusOr<InsertOptions> DecodeCacheOptions(const v1::CacheOptions& options,
                                                 const std::string& tenant, const Limits& limits);
absl::StatusOr<absl::Duration> DecodeLease(const google::protobuf::Duration& lease,
                                           absl::string_view field, const Limits& limits);

// Returns INVALID_ARGUMENT for an empty handle, and NOT_FOUND for text that is not a handle, as for
// an unknown handle.
absl::StatusOr<Handle> DecodeHandle(absl::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_MATRIX_H_
