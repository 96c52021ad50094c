// SPDX-License-Identifier: Apache-2.0

// Detects matrices that their parsed entries or their pattern show to be singular. The call is then
// answered without a job.
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

// Checks the leading block of order n of a parsed matrix for an empty row or column. Returns
// nullopt if there is none. Otherwise returns a singular factor without data, whose reservation
// covers only the cache entry. May block.
absl::StatusOr<std::optional<NewFactor>> FindSingular(ServerCore& core, DeviceSlot& slot,
                                                      MatrixUpload& upload,
                                                      const FactorizeOptions& options, int64_t n);
// Checks the whole matrix in the same way. Also detects a structural singularity found by the
// analysis of the pattern. `options` are those of the full factorization. May block.
absl::StatusOr<std::optional<NewFactor>> FindSingular(ServerCore& core, DeviceSlot& slot,
                                                      MatrixUpload& upload,
                                                      const FactorizeOptions& options,
                                                      const SparseChoice& sparse);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SINGULAR_MATRIX_H_
