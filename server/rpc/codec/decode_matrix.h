// SPDX-License-Identifier: Apache-2.0

// Decodes the declarations of matrices before their payloads arrive.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_MATRIX_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_MATRIX_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/engine/request.h"

namespace crout {

// `field` is the path of `spec` in the request, for messages. CheckPayload() checks the dimensions.
absl::StatusOr<MatrixSpec> DecodeMatrix(const v1::MatrixSpec& spec, absl::string_view field);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_MATRIX_H_
