// SPDX-License-Identifier: Apache-2.0

// Decodes the headers of a series.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_SERIES_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_SERIES_H_

#include "absl/status/statusor.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/engine/request.h"

namespace crout {

// Decodes the options of the first header, shared by all steps.
absl::StatusOr<SeriesRequest> DecodeSeries(const v1::SolveSeriesHeader& header);
// Decodes the matrices of one step.
absl::StatusOr<SeriesStepRequest> DecodeSeriesStep(const v1::SolveSeriesHeader& header);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_SERIES_H_
