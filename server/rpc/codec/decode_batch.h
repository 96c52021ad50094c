// SPDX-License-Identifier: Apache-2.0

// What a request declares of a batch, and of the systems to solve with one.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_BATCH_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_BATCH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/factorization.h"
#include "kernels/jobs/batch_solve.h"
#include "server/rpc/core.h"

namespace crout {

// What a header declares of a batch, max_diagonal and diagonals aside. UNIMPLEMENTED for a device
// that takes no batches, or not of this type.
absl::StatusOr<BatchExtent> DecodeBatch(const v1::BatchSpec& spec, absl::string_view field,
                                        const Limits& limits, const Device& device);
// Which systems of a batch a call solves, and how: all but the method. `factor`: of the batch.
struct BatchSystems {
  BatchRightHandSides rhs;
  BatchSolveOptions options;
};
absl::StatusOr<BatchSystems> DecodeSystems(const v1::SolveBatchHeader& header,
                                           const FactorSummary& factor);
absl::StatusOr<BatchSystems> DecodeSystems(const v1::FactorizeAndSolveBatchHeader& header,
                                           const FactorSummary& factor);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_BATCH_H_
