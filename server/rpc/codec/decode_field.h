// SPDX-License-Identifier: Apache-2.0

// Decodes fields that occur in several requests. `field` is the path of the field, for messages.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_FIELD_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_FIELD_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/dtype.h"
#include "kernels/matrix.h"

namespace crout {

absl::StatusOr<DType> DecodeDtype(v1::Dtype dtype, DType unspecified, absl::string_view field);
// `field` is the path of the message that contains the field `operation`.
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

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_FIELD_H_
