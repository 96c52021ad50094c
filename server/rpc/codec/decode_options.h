// SPDX-License-Identifier: Apache-2.0

// Decodes the options of factorizations and solves.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "server/rpc/core.h"

namespace crout {

// Checks the order and the number of entries of the matrix in an estimate, and returns its type.
absl::StatusOr<DType> DecodeProblem(const v1::EstimateFactorizeRequest& request,
                                    const Limits& limits);

// Decodes the options that do not depend on the order or the device. Resolve() sets the others.
absl::StatusOr<FactorizeOptions> DecodeOptions(const v1::FactorizeOptions& options,
                                               DType matrix_dtype);
// Selects the algorithm, and the solver for a condition estimate if one is requested. Returns
// UNIMPLEMENTED for an algorithm that the device lacks, and FAILED_PRECONDITION for an algorithm
// that leaves no factors.
absl::Status Resolve(const v1::FactorizeOptions& options, const Device& device, int64_t n,
                     FactorizeOptions* decoded);
// Decodes all options except the solver, which depends on the factor.
absl::StatusOr<SolveOptions> DecodeOptions(const v1::SolveOptions& options,
                                           absl::string_view field);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_
