// SPDX-License-Identifier: Apache-2.0

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
#include "kernels/cuda/irr_lu/side_queues.h"
#include "kernels/irregular_batch.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

// A batch with large members, on the host and on the device.
struct LargeMembersBatch {
  const IrregularBatch& a;
  std::span<const BatchMember> on_host;
  std::span<const int32_t> order;  // the large members, in descending size
  const BatchFactors& factors;
};

// Factors large members by crout_lu, a few concurrently, because one member leaves multiprocessors
// idle during its panels. Immutable and thread-safe.
class LargeMembers {
 public:
  // Requires that the GPU is current.
  static absl::StatusOr<std::unique_ptr<LargeMembers>> Create(const DeviceLimits& limits);

  // Returns true if a member is large. Depends on the member alone: at least 2048 rows and columns,
  // and at most as many rows as crout_lu supports.
  bool Has(DType dtype, const BatchMember& member) const;

  // Bytes of device memory for Factor, for any batch of this extent. `diagonals` and `max_diagonal`
  // may exceed the batch's values.
  size_t WorkspaceBytes(const BatchExtent& a) const;

  // Enqueues the factorization of the members batch.order, and their infos. On success and on
  // error, later work on the context's stream follows all of it. Returns CANCELLED if `stop`
  // requests it; this is checked before each leaf of a panel.
  absl::Status Factor(Context& context, const LargeMembersBatch& batch,
                      std::span<std::byte> workspace, const StopRequested& stop) const;

 private:
  explicit LargeMembers(const LuPanelKernels& kernels) : kernels_(kernels) {}

  // The number of concurrent factorizations for which a batch of this extent gets workspace.
  int64_t MaxConcurrent(const BatchExtent& a) const;
  size_t LuBytes(const BatchExtent& a) const;

  const LuPanelKernels kernels_;
  std::unique_ptr<SideQueues> side_queues_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_LARGE_MEMBERS_H_
