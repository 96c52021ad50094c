// SPDX-License-Identifier: Apache-2.0

// How a request wants its matrix factored, or its systems solved.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "server/rpc/core.h"

namespace crout {

// Checks the order of the matrix to estimate for, and returns its type.
absl::StatusOr<DType> DecodeProblem(const v1::EstimateFactorizeRequest& request,
                                    const Limits& limits);

// All but what depends on the order and the device: see Resolve().
absl::StatusOr<FactorizeOptions> DecodeOptions(const v1::FactorizeOptions& options,
                                               DType matrix_dtype);
// Finds the algorithm that `options` names, and the solver for a condition estimate if one is asked
// for. UNIMPLEMENTED for an algorithm that the device lacks, FAILED_PRECONDITION for one that
// leaves no factors.
absl::Status Resolve(const v1::FactorizeOptions& options, const Device& device, int64_t n,
                     FactorizeOptions* decoded);
// All but the solver, which needs the factor.
absl::StatusOr<SolveOptions> DecodeOptions(const v1::SolveOptions& options,
                                           absl::string_view field);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_
