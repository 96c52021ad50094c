// SPDX-License-Identifier: Apache-2.0

// Results into messages.
#ifndef CROUT_SERVER_RPC_CODEC_ENCODE_H_
#define CROUT_SERVER_RPC_CODEC_ENCODE_H_

#include "absl/time/time.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/matrix.h"
#include "kernels/numerics/judgment.h"
#include "server/engine/cache/factor_cache.h"
#include "server/rpc/core.h"

namespace crout {

v1::Factor Encode(const FactorInfo& info);
// With the counts of its iterations, as far as a reply takes them.
v1::Factor EncodeWithCounts(const FactorInfo& info);
v1::Timings Encode(const CallTimings& timings);
// Appends what a solution is to be warned of.
void AddWarnings(const Doubts& doubts, google::protobuf::RepeatedField<int>* warnings);
v1::BatchSpec EncodeBatch(const BatchExtent& extent);
v1::DenseSpec EncodeDense(const PackedMatrix& shape);
google::protobuf::Timestamp EncodeTime(absl::Time time);
google::protobuf::Duration EncodeDuration(absl::Duration duration);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_ENCODE_H_
