// Members of a batch's factors, as a download has them.
#ifndef CROUT_KERNELS_JOBS_BATCH_DOWNLOAD_H_
#define CROUT_KERNELS_JOBS_BATCH_DOWNLOAD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factor_parts.h"
#include "kernels/irregular_batch.h"
#include "kernels/memory.h"

namespace crout {

// The members first to first + count - 1, counted from 0.
struct MemberRange {
  int64_t first = 0;
  int64_t count = 0;
};

// As bytes: the members' LU as batch_payload.h says, then from the next multiple of
// kMemberAlignment on, for each its min(rows, cols) row interchanges in LAPACK's form, int32
// from 1.
struct BatchDownload {
  BatchExtent extent;  // of the range
  Buffer bytes;
};

// Host bytes that the download takes at most, in the sizes in which memory is given out, what is
// needed on the way included. `factor`: of the whole batch, of which the range is a part.
absl::StatusOr<size_t> BatchDownloadBytes(const BatchExtent& factor, const MemberRange& range);

// The range of the `factor` with these parts, in the memory of the context's device or, without a
// context, of the host. Blocks until the copy in `memory`, of the host, is complete.
absl::StatusOr<BatchDownload> DownloadMembers(ExecutionContext* context, const FactorParts& parts,
                                              const BatchExtent& factor, const MemberRange& range,
                                              MemoryResource& memory);

// Host bytes that DownloadFigures takes for so many members.
size_t BatchFiguresBytes(int64_t members);

// BatchFigures of all members of the factor with these parts, which are where DownloadMembers has
// them. Blocks until the copy is complete; no buffer for no members.
absl::StatusOr<Buffer> DownloadFigures(ExecutionContext* context, const FactorParts& parts,
                                       int64_t members, MemoryResource& memory);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BATCH_DOWNLOAD_H_
