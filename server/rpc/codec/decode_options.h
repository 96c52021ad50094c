// SPDX-License-Identifier: Apache-2.0

// Decodes the options of factorizations and solves, and the headers of a series.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/engine/request.h"

namespace crout {

// OptionsFor() checks the result against the matrix and the device.
absl::StatusOr<FactorRequest> DecodeOptions(const v1::FactorizeOptions& options);
// `field` is the path of the options within the request, for messages.
absl::StatusOr<SolveRequest> DecodeOptions(const v1::SolveOptions& options,
                                           absl::string_view field);

// Decodes the options of the first header, shared by all steps.
absl::StatusOr<SeriesRequest> DecodeSeries(const v1::SolveSeriesHeader& header);
// Decodes the matrices of one step.
absl::StatusOr<SeriesStepRequest> DecodeSeriesStep(const v1::SolveSeriesHeader& header);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_OPTIONS_H_
