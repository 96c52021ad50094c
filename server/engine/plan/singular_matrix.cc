// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/singular_matrix.h"

#include <limits>
#include <utility>

#include "kernels/util/status_macros.h"

namespace crout {

absl::StatusOr<std::optional<NewFactor>> FindSingular(Engine& engine, DeviceSlot& slot,
                                                      MatrixUpload& upload,
                                                      const FactorizeOptions& options, int64_t n) {
  CROUT_ASSIGN_OR_RETURN(const std::optional<LeadingBlock> block, upload.InspectLeadingBlock(n));
  if (!block || (!block->empty_row && !block->empty_column)) return std::optional<NewFactor>();
  NewFactor factor;
  CROUT_ASSIGN_OR_RETURN(factor.reservation, engine.cache.ReserveOnDevice(
                                                 slot, FactorCache::Charge(0), upload.tenant()));
  factor.factorization = SingularFactorization(
      options, upload.shape().dtype, n,
      block->empty_row ? SingularReason::kEmptyRow : SingularReason::kEmptyColumn,
      (block->empty_row ? *block->empty_row : *block->empty_column) + 1);
  factor.factorization.summary.norm_one = block->norm_one;
  factor.factorization.summary.norm_inf = block->norm_inf;
  factor.slot = &slot;
  return std::optional(std::move(factor));
}

absl::StatusOr<std::optional<NewFactor>> FindSingular(Engine& engine, DeviceSlot& slot,
                                                      MatrixUpload& upload,
                                                      const FactorizeOptions& options,
                                                      const SparseChoice& sparse) {
  const int64_t n = upload.shape().rows;
  CROUT_ASSIGN_OR_RETURN(std::optional<NewFactor> factor,
                         FindSingular(engine, slot, upload, options, n));
  if (!factor && sparse.unmatched_row() >= 0) {
    factor.emplace();
    CROUT_ASSIGN_OR_RETURN(factor->reservation, engine.cache.ReserveOnDevice(
                                                    slot, FactorCache::Charge(0), upload.tenant()));
    factor->factorization = SingularFactorization(
        options, upload.shape().dtype, n, SingularReason::kStructure, sparse.unmatched_row() + 1);
    CROUT_ASSIGN_OR_RETURN(const std::optional<LeadingBlock> block, upload.InspectLeadingBlock(n));
    // InspectLeadingBlock() returns nullopt if a sum overflows; the norms are then infinite.
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    factor->factorization.summary.norm_one = block ? block->norm_one : kInfinity;
    factor->factorization.summary.norm_inf = block ? block->norm_inf : kInfinity;
    factor->slot = &slot;
  }
  if (!factor) return factor;
  // Report the sparse method that the request names instead of the dense method.
  if (sparse.named()) factor->factorization.summary.algorithm = sparse.name();
  factor->nnz = upload.nnz();
  return factor;
}

}  // namespace crout
