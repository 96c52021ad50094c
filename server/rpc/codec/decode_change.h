// SPDX-License-Identifier: Apache-2.0

// How a step of a series says that its matrix is the last one, changed.
#ifndef CROUT_SERVER_RPC_CODEC_DECODE_CHANGE_H_
#define CROUT_SERVER_RPC_CODEC_DECODE_CHANGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "crout/v1/factorization_service.pb.h"
#include "kernels/factorization.h"
#include "kernels/jobs/series_step.h"
#include "kernels/value_map.h"
#include "server/rpc/codec/decode_matrix.h"

namespace crout {

// The entries of the stream's last matrix, which a later step may bring new values of.
struct SeriesEntries {
  enum class Form {
    kNoMatrix,  // the stream has brought none
    kDense,     // an array has no entries with positions
    kTooMany,   // more than a map may have
    kSparse,    // a coordinate text or a sparse matrix: the members below are set
  };

  Form form = Form::kNoMatrix;
  ValueMapShape map = {};
  int64_t nnz = 0;
  std::string digest = {};  // SeriesResult.entry_digest
};

// A change of the matrix that the stream brought last: INVALID_ARGUMENT, or FAILED_PRECONDITION, as
// the contract says of v1::MatrixChange. `last`: the entries of that matrix.
absl::StatusOr<MatrixChange> DecodeChange(const v1::MatrixChange& change,
                                          const SeriesEntries& last);

// The payload of `change`: bytes that only the job can read, as words of four. `kept`: the matrix
// that is changed. INVALID_ARGUMENT for a size that is none, and for a change that a sparse matrix
// does not take.
absl::StatusOr<PayloadSpec> ChangePayload(const MatrixChange& change, const FactorSummary& kept);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_DECODE_CHANGE_H_
