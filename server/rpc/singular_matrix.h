// SPDX-License-Identifier: Apache-2.0

// Matrices whose text alone shows that they are singular: answered without a job.
#ifndef CROUT_SERVER_RPC_SINGULAR_MATRIX_H_
#define CROUT_SERVER_RPC_SINGULAR_MATRIX_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/jobs/factorize.h"
#include "server/engine/cache/factor_cache.h"
#include "server/rpc/core.h"
#include "server/rpc/matrix_upload.h"
#include "server/rpc/sparse_choice.h"

namespace crout {

// A factor of the leading block of order n of a matrix whose text was parsed, if an empty row or
// column shows that block to be singular: it holds nothing, and its reservation is that of an
// entry. May block.
absl::StatusOr<std::optional<NewFactor>> FindSingular(ServerCore& core, DeviceSlot& slot,
                                                      MatrixUpload& upload,
                                                      const FactorizeOptions& options, int64_t n);
// Likewise of all of it; also where the analysis of its pattern has found that. `options`: as it
// would be factored in full.
absl::StatusOr<std::optional<NewFactor>> FindSingular(ServerCore& core, DeviceSlot& slot,
                                                      MatrixUpload& upload,
                                                      const FactorizeOptions& options,
                                                      const SparseChoice& sparse);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SINGULAR_MATRIX_H_
