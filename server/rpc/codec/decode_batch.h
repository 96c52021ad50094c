// SPDX-License-Identifier: Apache-2.0

// Decodes batches, and the systems to solve with a batch.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_BATCH_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_BATCH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/factorization.h"
#include "server/engine/engine.h"
#include "server/engine/plan/batch_steps.h"

namespace crout {

// Decodes the declared extent of a batch, except max_diagonal and diagonals.
absl::StatusOr<BatchExtent> DecodeBatch(const v1::BatchSpec& spec, absl::string_view field,
                                        const EngineLimits& limits);
// `factor` is the factor of the batch.
absl::StatusOr<BatchSystems> DecodeSystems(const v1::SolveBatchHeader& header,
                                           const FactorSummary& factor);
absl::StatusOr<BatchSystems> DecodeSystems(const v1::FactorizeAndSolveBatchHeader& header,
                                           const FactorSummary& factor);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_BATCH_H_
