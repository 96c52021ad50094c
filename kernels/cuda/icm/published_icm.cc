// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/icm/published_icm.h"

#include <algorithm>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/icm/icm_plan.h"
#include "kernels/cuda/icm/icm_start.h"
#include "kernels/cuda/icm/published_run.h"
#include "kernels/cuda/ops/permute_rows.h"
#include "kernels/icm/sections.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr int kDefaultBlock = 32;  // the fastest of the block sizes in the source

void ComputeLayout(DType dtype, int multiprocessors, PublishedPlan& plan) {
  WorkspaceLayout layout;
  const size_t n = plan.n;
  const size_t sections = plan.sections;
  layout.Take(1, sizeof(IcmState));
  plan.sweeps = layout.Take(sections * sections, sizeof(int32_t));
  plan.pivots = layout.Take(sections, sizeof(int32_t));
  plan.bad_elements = layout.Take(sections, sizeof(int32_t));
  plan.section_changed = layout.Take(sections, sizeof(int32_t));
  plan.section_nan = layout.Take(sections, sizeof(int32_t));
  plan.flags = layout.Take(1, sizeof(PublishedFlags));
  plan.permutations = layout.Take(2 * n, sizeof(int64_t));
  plan.interchanges = layout.Take(2 * n, sizeof(int32_t));
  for (size_t& matrix : plan.matrices) matrix = layout.Take(n * n, SizeOf(dtype));
  if (plan.warm) {
    plan.origin = layout.Take(n, sizeof(int32_t));
    plan.scratch = layout.Take(n * multiprocessors, SizeOf(dtype));
  }
  plan.bytes = layout.total();
}

template <class Element>
void At(std::span<std::byte> workspace, size_t offset, Element*& place) {
  place = reinterpret_cast<Element*>(workspace.data() + offset);
}

IcmRun RunOf(const PublishedPlan& plan, std::span<std::byte> workspace,
             const LuParameters& parameters, DeviceReport& report) {
  IcmRun run;
  At(workspace, 0, run.state);
  At(workspace, plan.sweeps, run.sweeps);
  At(workspace, plan.pivots, run.pivots);
  At(workspace, plan.bad_elements, run.bad_elements);
  run.host = HostSignals(report);
  run.sections = plan.sections;
  run.section_size = plan.section;
  run.variant = MethodVariant::kPublished;
  run.block_size = plan.block;
  run.warm = plan.warm;
  run.criterion = plan.criterion;
  run.tolerances = {parameters.tolerance, parameters.absolute_tolerance};
  run.sweep_limit = parameters.sweep_limit > 0 ? parameters.sweep_limit : SweepBound(plan.section);
  return run;
}

}  // namespace

absl::StatusOr<PublishedPlan> PlanPublished(DType dtype, int64_t n, const LuParameters& parameters,
                                            bool pivoting, int multiprocessors) {
  // PositionKey uses 21 bits per index.
  if (n < 0 || n >= int64_t{1} << 21) {
    return absl::InvalidArgumentError(
        "the iterative Crout method supports orders below 2^21. Use another algorithm");
  }
  PublishedPlan plan;
  plan.n = n;
  plan.warm = parameters.start.has_value();
  plan.block = parameters.block_size > 0 ? parameters.block_size : kDefaultBlock;
  const int64_t size =
      parameters.section_size > 0 ? parameters.section_size : PublishedSectionSize(n, plan.block);
  plan.section = std::clamp<int64_t>(size, 1, std::max<int64_t>(1, n));
  plan.sections = SectionGrid{n, plan.section}.count();
  plan.criterion.rule = pivoting ? PivotRule::kInterval : PivotRule::kNone;
  if (parameters.pivoting.has_value()) plan.criterion = *parameters.pivoting;
  ComputeLayout(dtype, multiprocessors, plan);
  return plan;
}

template <class T>
absl::Status EnqueuePublished(Context& context, const PublishedPlan& plan, const MatrixView<T>& a,
                              int64_t* ipiv, std::span<std::byte> workspace,
                              const LuParameters& parameters) {
  const auto at = [&](size_t offset, auto*& place) { At(workspace, offset, place); };
  const DeviceLimits& limits = context.core().limits();
  const cudaStream_t stream = context.stream();
  const int64_t n = plan.n;
  const IcmRun run = RunOf(plan, workspace, parameters, context.report());
  PublishedRun<T> work;
  work.lu = a;
  at(plan.matrices[0], work.a);
  at(plan.matrices[1], work.sums);
  at(plan.matrices[2], work.next);
  at(plan.section_changed, work.section_changed);
  at(plan.section_nan, work.section_nan);
  at(plan.flags, work.flags);
  int64_t* first = nullptr;  // permutation of the start's rows
  at(plan.permutations, first);
  work.rows = first + n;
  IcmStart<T> start;
  int32_t* origin = nullptr;
  const int64_t* start_ipiv = ipiv;
  if (plan.warm) {
    const FactorView& factor = *parameters.start;
    start_ipiv = factor.ipiv;
    at(plan.origin, origin);
    start = {factor.lu.As<const T>().data, factor.lu.ld, factor.unit_diagonal == UnitDiagonal::kU,
             origin};
  }
  CROUT_RETURN_IF_CUDA_ERROR(LaunchIcmInitialize(run, n, ipiv, origin, stream));
  CROUT_RETURN_IF_CUDA_ERROR(LaunchTracePermutation(start_ipiv, n, first, stream));
  CROUT_RETURN_IF_CUDA_ERROR(LaunchTracePermutation(ipiv, n, work.rows, stream));
  if (plan.warm) {
    T* scratch = nullptr;
    at(plan.scratch, scratch);
    CROUT_RETURN_IF_CUDA_ERROR(LaunchIcmPermute(a, first, scratch, limits.multiprocessors, stream));
  }
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchPublishedStart(run, work, start, limits.multiprocessors, stream));
  for (int64_t index = 0; index < plan.sections; ++index) {
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchPublishedSection(run, work, index, plan.block, limits, stream));
  }
  int32_t* interchanges = nullptr;
  at(plan.interchanges, interchanges);
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchIcmCompose(run, n, start_ipiv, first, work.rows, interchanges, ipiv, limits, stream));
  CROUT_RETURN_IF_CUDA_ERROR(LaunchIcmFinalize(run, stream));
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(&context.report().info, &run.state->info,
                                             sizeof(int32_t), cudaMemcpyDeviceToHost, stream));
  return absl::OkStatus();
}

template absl::Status EnqueuePublished(Context&, const PublishedPlan&, const MatrixView<float>&,
                                       int64_t*, std::span<std::byte>, const LuParameters&);
template absl::Status EnqueuePublished(Context&, const PublishedPlan&, const MatrixView<double>&,
                                       int64_t*, std::span<std::byte>, const LuParameters&);
template absl::Status EnqueuePublished(Context&, const PublishedPlan&,
                                       const MatrixView<Complex<float>>&, int64_t*,
                                       std::span<std::byte>, const LuParameters&);
template absl::Status EnqueuePublished(Context&, const PublishedPlan&,
                                       const MatrixView<Complex<double>>&, int64_t*,
                                       std::span<std::byte>, const LuParameters&);

}  // namespace crout::cuda
