// Members of an irregular batch that are large enough for crout_lu.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_LARGE_MEMBERS_H_
#define CROUT_KERNELS_CUDA_IRR_LU_LARGE_MEMBERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/irr_lu/side_lanes.h"
#include "kernels/irr_lu.h"
#include "kernels/irregular_batch.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

// A batch with large members, on the host and on the device.
struct LargeMembersBatch {
  const IrregularBatch& a;
  std::span<const BatchMember> on_host;
  std::span<const int32_t> order;  // the large members, by descending size
  const BatchFactors& factors;
};

// Their factorizations by crout_lu, a few side by side: one member leaves multiprocessors idle
// during its panels. Immutable and thread-safe.
class LargeMembers {
 public:
  // With the GPU current.
  static absl::StatusOr<std::unique_ptr<LargeMembers>> Create(const DeviceLimits& limits);

  // By the member alone: from 2048 rows and columns on, up to the rows that crout_lu takes.
  bool Has(DType dtype, const BatchMember& member) const;

  // Device memory for Factor, for any batch of this extent (`diagonals` and `max_diagonal` may be
  // larger than the batch has).
  size_t WorkspaceBytes(const BatchExtent& a) const;

  // Enqueues the factorization of the members batch.order, with what becomes of their infos. What
  // the context's stream is given from then on comes after all of it, whatever is returned.
  // CANCELLED when asked to stop, which happens before each leaf of a panel.
  absl::Status Factor(Context& context, const LargeMembersBatch& batch,
                      std::span<std::byte> workspace, const StopRequested& stop) const;

 private:
  explicit LargeMembers(const LuPanelKernels& kernels) : kernels_(kernels) {}

  // Of that extent's members, for how many at once there is to be a workspace.
  int64_t MostAtOnce(const BatchExtent& a) const;
  size_t LuBytes(const BatchExtent& a) const;

  const LuPanelKernels kernels_;
  std::unique_ptr<SideLanes> side_lanes_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_LARGE_MEMBERS_H_
