// SPDX-License-Identifier: Apache-2.0

// The iterative Crout method on the device.
#ifndef CROUT_KERNELS_CUDA_ICM_ICM_H_
#define CROUT_KERNELS_CUDA_ICM_ICM_H_

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/cuda/icm/icm_plan.h"
#include "kernels/cuda/icm/published_icm.h"
#include "kernels/lu_algorithm.h"

namespace crout::cuda {

// `icm` without and `icmpp` with pivoting, unit diagonal in U, after L. M. Cejka, Parallel
// Computation of LU Decomposition on GPUs (CTU in Prague, 2023): L and U are the fixed point of
//   l_ij = a_ij - sum_{k<j} l_ik u_kj            i >= j
//   u_ij = (a_ij - sum_{k<i} l_ik u_kj) / l_ii   i < j
// iterated by square sections, first the diagonal one, then those below and to the right of it.
// Products with final sections are subtracted once, by matrix products. Sweeps run to convergence
// inside one kernel, and nothing waits for the host.
//
// If the pivoting rule can reject any element, a cold start computes the diagonal section and those
// below it column by column (icm_panel.h). A warm start, `icm` and the interval rule first sweep
// whole sections (icm_diagonal.h), and search by columns only after a bad element. If l_ii is
// exactly zero, u_ij := 0 and info names i. Pivoting is partial unless a parameter selects another
// rule. Warm starts use threshold(0.1) by default, which keeps their pivots while those are
// acceptable. Sections that were computed column by column report no sweeps.
//
// MethodVariant::kPublished runs the method as its source defines it (published_run.h), with 3 n^2
// elements of workspace.
class CudaIcm final : public LuAlgorithm {
 public:
  // Requires a GPU on which IcmFits in float64. Supports complex128 if that fits too.
  CudaIcm(DeviceCore& core, bool pivoting);

  const MethodTraits& traits() const override { return traits_; }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters& parameters) const override;
  absl::StatusOr<size_t> ReportBytes(DType dtype, int64_t n,
                                     const LuParameters& parameters) const override;
  double PredictSeconds(DType dtype, int64_t n) const override;
  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters& parameters,
                      StopRequested stop) const override;
  absl::Status Finish(ExecutionContext& context, std::span<std::byte> workspace,
                      IterationReport* report) const override;

 private:
  absl::StatusOr<IcmPlan> Plan(DType dtype, int64_t n, const LuParameters& parameters) const;
  absl::StatusOr<PublishedPlan> PlanPublishedVariant(DType dtype, int64_t n,
                                                     const LuParameters& parameters) const;
  absl::Status CheckWorkspace(std::span<std::byte> workspace, size_t needed) const;

  DeviceCore& core_;
  const MethodTraits traits_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_ICM_H_
