// SPDX-License-Identifier: Apache-2.0

// Fields that several parts of a request have. `field` is the path, for messages.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_FIELD_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_FIELD_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/device.h"

namespace crout {

absl::StatusOr<DType> DecodeDtype(v1::Dtype dtype, DType unspecified, absl::string_view field);
// UNIMPLEMENTED for a type that the device does not take.
absl::Status CheckTakes(const Device& device, DType dtype, absl::string_view field);
// `field` has the operation as its own field of that name.
absl::StatusOr<Op> DecodeOperation(v1::Operation operation, absl::string_view field);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_FIELD_H_
