// SPDX-License-Identifier: Apache-2.0

// EstimateFactorize: predicts the memory and the time of a factorization.
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/plan/estimate.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/handlers/handlers.h"

namespace crout {
namespace {

absl::StatusOr<EstimateRequest> Decode(const v1::EstimateFactorizeRequest& request) {
  EstimateRequest decoded;
  if (!request.handle().empty()) {
    if (request.n() != 0 || request.has_nnz() || request.matrix_dtype() != v1::DTYPE_UNSPECIFIED) {
      return BadField(
          "handle",
          "n, nnz or matrix_dtype is also set, but the handle's matrix determines them: "
          "set only the handle");
    }
    CROUT_ASSIGN_OR_RETURN(decoded.like, DecodeHandle(request.handle()));
  }
  decoded.n = request.n();
  if (request.has_nnz()) decoded.nnz = request.nnz();
  CROUT_ASSIGN_OR_RETURN(decoded.dtype,
                         DecodeDtype(request.matrix_dtype(), DType::kFloat64, "matrix_dtype"));
  CROUT_ASSIGN_OR_RETURN(decoded.factor, DecodeOptions(request.options()));
  return decoded;
}

}  // namespace

absl::Status EstimateFactorize(ServerCore& core, const Scope& scope,
                               const v1::EstimateFactorizeRequest& request,
                               v1::EstimateFactorizeResponse* response) {
  CROUT_ASSIGN_OR_RETURN(const EstimateRequest decoded, Decode(request));
  CROUT_ASSIGN_OR_RETURN(const FactorEstimate estimate,
                         EstimateFactor(core.engine, decoded, scope.tenant));
  response->set_rough(estimate.rough);
  response->set_algorithm(AlgorithmFromName(estimate.algorithm));
  if (estimate.precision != FactorPrecision::kFactorType) {
    response->set_precision(ToProto(estimate.precision));
  }
  response->set_device(estimate.device);
  response->set_peak_bytes(static_cast<int64_t>(estimate.peak_bytes));
  response->set_cached_bytes(static_cast<int64_t>(estimate.cached_bytes));
  response->set_predicted_seconds(estimate.seconds);
  response->set_predicted_queue_seconds(estimate.queue_seconds);
  response->set_fits(estimate.fits);
  return absl::OkStatus();
}

}  // namespace crout
