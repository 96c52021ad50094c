// SPDX-License-Identifier: Apache-2.0

// Detects singular matrices by their parsed entries or their pattern. Their calls need no job.
#ifndef CROUT_SERVER_ENGINE_PLAN_SINGULAR_MATRIX_H_
#define CROUT_SERVER_ENGINE_PLAN_SINGULAR_MATRIX_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/jobs/factorize.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/engine.h"
#include "server/engine/plan/sparse_choice.h"
#include "server/engine/upload/matrix_upload.h"

namespace crout {

// Checks the leading block of order n of a parsed matrix for an empty row or column. Returns
// nullopt if there is none. Otherwise returns a singular factor without data, whose reservation
// covers only the cache entry. May block.
absl::StatusOr<std::optional<NewFactor>> FindSingular(Engine& engine, DeviceSlot& slot,
                                                      MatrixUpload& upload,
                                                      const FactorizeOptions& options, int64_t n);
// Checks the whole matrix in the same way. Also detects a structural singularity found by the
// analysis of the pattern. `options` are those of the full factorization. May block.
absl::StatusOr<std::optional<NewFactor>> FindSingular(Engine& engine, DeviceSlot& slot,
                                                      MatrixUpload& upload,
                                                      const FactorizeOptions& options,
                                                      const SparseChoice& sparse);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_SINGULAR_MATRIX_H_
