// SPDX-License-Identifier: Apache-2.0

// Downloads of L and U of a sparse factor.
#ifndef CROUT_KERNELS_JOBS_SPARSE_SPARSE_DOWNLOAD_H_
#define CROUT_KERNELS_JOBS_SPARSE_SPARSE_DOWNLOAD_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factorization.h"
#include "kernels/memory.h"
#include "kernels/sparse/factor_download.h"
#include "kernels/sparse_lu.h"

namespace crout {

// Returns an upper bound of the host bytes of a download, as charged and including temporary
// memory. `on_host`: the factor is in host memory.
absl::StatusOr<size_t> SparseDownloadBytes(const SparseLu& method, const FactorSummary& factor,
                                           bool on_host);

// Downloads the factor with these parts, made by `method`, to `memory`, which is host memory, laid
// out by SparseDownloadLayout. The parts are in the memory of the context's device, or in host
// memory if `context` is null. Blocks until the copy is complete.
absl::StatusOr<Buffer> DownloadSparse(ExecutionContext* context, const SparseLu& method,
                                      const FactorSummary& factor, const FactorParts& parts,
                                      MemoryResource& memory);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_SPARSE_DOWNLOAD_H_
