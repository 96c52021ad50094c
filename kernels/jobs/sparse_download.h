// Downloads of L and U of a sparse factor.
#ifndef CROUT_KERNELS_JOBS_SPARSE_DOWNLOAD_H_
#define CROUT_KERNELS_JOBS_SPARSE_DOWNLOAD_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factorization.h"
#include "kernels/memory.h"
#include "kernels/sparse/factor_download.h"
#include "kernels/sparse_lu.h"

namespace crout {

// Host bytes that the download of such a sparse factor takes at most, in the sizes in which memory
// is given out, what is needed on the way included. `on_host`: the factor is in host memory.
absl::StatusOr<size_t> SparseDownloadBytes(const SparseLu& method, const FactorSummary& factor,
                                           bool on_host);

// Of the factor that `method` made and of which these are the parts, in the memory of the context's
// device or, without a context, of the host. Blocks until the copy in `memory`, of the host, is
// complete: as SparseDownloadLayout says.
absl::StatusOr<Buffer> DownloadSparse(ExecutionContext* context, const SparseLu& method,
                                      const FactorSummary& factor, const FactorParts& parts,
                                      MemoryResource& memory);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_DOWNLOAD_H_
