// SPDX-License-Identifier: Apache-2.0

// Decodes the options of factorizations and solves.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/engine/request.h"
#include "server/rpc/core.h"

namespace crout {

// Checks the order and the number of entries of the matrix in an estimate, and returns its type.
absl::StatusOr<DType> DecodeProblem(const v1::EstimateFactorizeRequest& request,
                                    const Limits& limits);

// OptionsFor() checks the result against the matrix and the device.
absl::StatusOr<FactorRequest> DecodeOptions(const v1::FactorizeOptions& options);
// `field` is the path of the options, for messages.
absl::StatusOr<SolveRequest> DecodeOptions(const v1::SolveOptions& options,
                                           absl::string_view field);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_
