// SPDX-License-Identifier: Apache-2.0

// The change that a step of a series makes to the last matrix.
#ifndef CROUT_SERVER_ENGINE_SERIES_MATRIX_CHANGE_H_
#define CROUT_SERVER_ENGINE_SERIES_MATRIX_CHANGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/jobs/series/series_step.h"
#include "kernels/value_map.h"
#include "server/engine/request.h"
#include "server/engine/upload/payload_spec.h"

namespace crout {

// Describes the entries of the last matrix of a stream. A later step may send new values for them.
struct SeriesEntries {
  enum class Form {
    kNoMatrix,  // the stream has sent no matrix
    kDense,     // a dense matrix, which has no list of entries
    kTooMany,   // more entries than a ValueMap can hold
    // A coordinate text or a sparse matrix. The members below are set.
    kSparse,
  };

  Form form = Form::kNoMatrix;
  ValueMapShape map = {};
  int64_t nnz = 0;
  std::string digest = {};  // SeriesResult.entry_digest
};

// Returns the change of the last matrix of the stream, whose entries `last` describes. New values
// must belong to these entries. Returns INVALID_ARGUMENT if the matrix has no list of entries, and
// FAILED_PRECONDITION if the list is not stored or has another digest.
absl::StatusOr<MatrixChange> ChangeOf(const ChangeRequest& change, const SeriesEntries& last);

// Describes the payload of `change`. `kept` is the summary of the matrix to change. Returns
// INVALID_ARGUMENT for an invalid size, and for a change that a sparse matrix does not support.
absl::StatusOr<PayloadSpec> ChangePayload(const MatrixChange& change, const FactorSummary& kept);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SERIES_MATRIX_CHANGE_H_
