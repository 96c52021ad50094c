// SPDX-License-Identifier: Apache-2.0

// Decodes batches, and the systems to solve with a batch.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_BATCH_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_BATCH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/factorization.h"
#include "kernels/jobs/batch_solve.h"
#include "server/rpc/core.h"

namespace crout {

// Decodes the declared extent of a batch, except max_diagonal and diagonals. Returns UNIMPLEMENTED
// if the device does not support batches, or batches of this type.
absl::StatusOr<BatchExtent> DecodeBatch(const v1::BatchSpec& spec, absl::string_view field,
                                        const Limits& limits, const Device& device);
// The systems of a batch that a call solves, and its options without the method. `factor` is the
// factor of the batch.
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
