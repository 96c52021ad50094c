// SPDX-License-Identifier: Apache-2.0

// Encodes results as messages.
#ifndef CROUT_SERVER_RPC_CODEC_ENCODE_H_
#define CROUT_SERVER_RPC_CODEC_ENCODE_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/matrix.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/plan/solve_step.h"
#include "server/engine/request.h"

namespace crout {

v1::Factor Encode(const FactorInfo& info);
// Also encodes the iteration counts, up to a limit per reply.
v1::Factor EncodeWithCounts(const FactorInfo& info);
v1::Timings Encode(const CallTimings& timings);
// Appends the warnings for a solution.
void AddWarnings(const AccuracyWarnings& accuracy_warnings,
                 google::protobuf::RepeatedField<int>* warnings);
// Encodes the result of a solve, except for `timings` and `promoted`.
v1::SolveResult Encode(const Solution& solution, int64_t factor_version, const std::string& device);
v1::BatchSpec EncodeBatch(const BatchExtent& extent);
v1::DenseSpec EncodeDense(const PackedMatrix& shape);
google::protobuf::Timestamp EncodeTime(absl::Time time);
google::protobuf::Duration EncodeDuration(absl::Duration duration);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_ENCODE_H_
