// SPDX-License-Identifier: Apache-2.0

// Downloads of the factors of batch members.
#ifndef CROUT_KERNELS_JOBS_BATCH_BATCH_DOWNLOAD_H_
#define CROUT_KERNELS_JOBS_BATCH_BATCH_DOWNLOAD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factor_parts.h"
#include "kernels/irregular_batch.h"
#include "kernels/memory.h"

namespace crout {

// The members first to first + count - 1, 0-based.
struct MemberRange {
  int64_t first = 0;
  int64_t count = 0;
};

// A download of a member range. `bytes` holds the members' LU in the layout of batch_payload.h.
// From the next multiple of kMemberAlignment on, it holds the min(rows, cols) row interchanges of
// each member in LAPACK's form: int32, 1-based.
struct BatchDownload {
  BatchExtent extent;  // extent of the range
  Buffer bytes;
};

// Returns an upper bound of the host bytes of a download, as charged and including temporary
// memory. `factor` is the extent of the whole batch, which contains the range.
absl::StatusOr<size_t> BatchDownloadBytes(const BatchExtent& factor, const MemberRange& range);

// Downloads `range` from the factor with these parts to `memory`, which is host memory. The parts
// are in the memory of the context's device, or in host memory if `context` is null. Blocks until
// the copy is complete.
absl::StatusOr<BatchDownload> DownloadMembers(ExecutionContext* context, const FactorParts& parts,
                                              const BatchExtent& factor, const MemberRange& range,
                                              MemoryResource& memory);

// Returns the host bytes of DownloadFigures for this number of members.
size_t BatchFiguresBytes(int64_t members);

// Downloads the BatchFigures of all members. `context` and `parts` as in DownloadMembers. Blocks
// until the copy is complete. Returns an empty buffer if there are no members.
absl::StatusOr<Buffer> DownloadFigures(ExecutionContext* context, const FactorParts& parts,
                                       int64_t members, MemoryResource& memory);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BATCH_BATCH_DOWNLOAD_H_
