// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/icm/icm.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/method_costs.h"
#include "kernels/cuda/icm/icm_diagonal.h"
#include "kernels/cuda/icm/icm_panel.h"
#include "kernels/cuda/icm/icm_start.h"
#include "kernels/cuda/icm/icm_state.h"
#include "kernels/cuda/icm/published_icm.h"
#include "kernels/cuda/icm/section_sweeps.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/cuda/ops/permute_rows.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// Estimated time of a cold start relative to cuSOLVER's getrf.
constexpr double kTimesGetrf = 2.5;

constexpr MethodTraits kIcm = {
    .name = "icm",
    .description = "iterative Crout method by sections, no pivoting (Cejka 2023)",
    .types = kAllTypes,
    .unit_diagonal = UnitDiagonal::kU,
    .pivoting = PivotRule::kNone,
    .block_sizes = {8, 32},
    .iterative = true,
    .supports_absolute_tolerance = true,
    .variants = {MethodVariant::kFast, MethodVariant::kPublished},
    .stoppable = true};
constexpr MethodTraits kIcmpp = {
    .name = "icmpp",
    .description = "iterative Crout method by sections, pivoting by rule (Cejka 2023)",
    .types = kAllTypes,
    .unit_diagonal = UnitDiagonal::kU,
    .pivoting = PivotRule::kPartial,
    .supports_pivoting = true,
    .block_sizes = {8, 32},
    .iterative = true,
    .supports_absolute_tolerance = true,
    .variants = {MethodVariant::kFast, MethodVariant::kPublished},
    .stoppable = true};

MethodTraits TraitsOn(const DeviceLimits& limits, bool pivoting) {
  MethodTraits traits = pivoting ? kIcmpp : kIcm;
  if (!IcmFits(DType::kComplex128, limits, pivoting)) {
    traits.types = {DType::kFloat32, DType::kFloat64, DType::kComplex64};
  }
  return traits;
}

template <class T>
T* At(std::span<std::byte> workspace, size_t offset) {
  return reinterpret_cast<T*>(workspace.data() + offset);
}

IcmRun MakeRun(Context& context, const IcmPlan& plan, std::span<std::byte> workspace,
               const LuParameters& parameters) {
  IcmRun run;
  run.state = At<IcmState>(workspace, plan.state);
  run.host = HostSignals(context.report());
  run.sweeps = At<int32_t>(workspace, plan.sweeps);
  run.pivots = At<int32_t>(workspace, plan.pivots);
  run.sections = plan.sections;
  run.section_size = plan.section;
  run.criterion = plan.criterion;
  run.tolerances = {parameters.tolerance, parameters.absolute_tolerance};
  run.sweep_limit = parameters.sweep_limit;
  run.warm = plan.warm;
  return run;
}

// Enqueues one factorization.
template <class T>
class IcmJob {
 public:
  IcmJob(Context& context, const IcmPlan& plan, const MatrixView<T>& a, int64_t* ipiv,
         std::span<std::byte> workspace, const LuParameters& parameters)
      : context_(context),
        plan_(plan),
        a_(a),
        ipiv_(ipiv),
        workspace_(workspace),
        limits_(context.core().limits()),
        run_(MakeRun(context, plan, workspace, parameters)) {
    if (!parameters.start.has_value()) return;
    const FactorView& start = *parameters.start;
    start_ipiv_ = start.ipiv;
    start_ = {start.lu.As<const T>().data, start.lu.ld, start.unit_diagonal == UnitDiagonal::kU,
              At<int32_t>(workspace, plan.origin)};
  }

  absl::Status Run() {
    CROUT_RETURN_IF_ERROR(Begin());
    for (int64_t begin = 0; begin < a_.rows; begin += plan_.block) {
      CROUT_RETURN_IF_ERROR(Block(begin, std::min(begin + plan_.block, a_.rows)));
    }
    return End();
  }

 private:
  cudaStream_t stream() const { return context_.stream(); }
  int64_t EndOf(int64_t begin, int64_t end) const { return std::min(begin + plan_.section, end); }
  int64_t* Permutation(int which) const {
    return At<int64_t>(workspace_, plan_.permutations) + which * plan_.n;
  }
  int32_t* Origin() const { return plan_.warm ? At<int32_t>(workspace_, plan_.origin) : nullptr; }

  absl::Status Begin();
  absl::Status End();
  // Factors sections [begin, end) and everything that depends on them alone.
  absl::Status Block(int64_t begin, int64_t end);
  absl::Status DiagonalAndBelow(int64_t begin, int64_t end);
  absl::Status SweepDiagonalAndBelow(int64_t begin, int64_t end);
  absl::Status SearchColumns(int64_t begin, int64_t end);
  absl::Status SweepRight(int64_t begin, int64_t end, int64_t from, int64_t to);
  // a[r0:r1, c0:c1] -= a[r0:r1, k0:k1] a[k0:k1, c0:c1]
  absl::Status Subtract(int64_t r0, int64_t r1, int64_t c0, int64_t c1, int64_t k0, int64_t k1);

  Context& context_;
  const IcmPlan& plan_;
  const MatrixView<T> a_;
  int64_t* const ipiv_;
  const std::span<std::byte> workspace_;
  const DeviceLimits& limits_;
  const IcmRun run_;
  const int64_t* start_ipiv_ = nullptr;
  IcmStart<T> start_;
};

template <class T>
absl::Status IcmJob<T>::Begin() {
  CROUT_RETURN_IF_CUDA_ERROR(LaunchIcmInitialize(run_, plan_.n, ipiv_, Origin(), stream()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(workspace_.data() + plan_.candidates, 0,
                                             2 * limits_.multiprocessors * sizeof(IcmCandidate),
                                             stream()));
  if (!plan_.warm) return absl::OkStatus();
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchTracePermutation(start_ipiv_, plan_.n, Permutation(0), stream()));
  CROUT_RETURN_IF_CUDA_ERROR(LaunchIcmPermute(a_, Permutation(0), At<T>(workspace_, plan_.scratch),
                                              limits_.multiprocessors, stream()));
  return absl::OkStatus();
}

template <class T>
absl::Status IcmJob<T>::End() {
  if (plan_.warm) {
    CROUT_RETURN_IF_CUDA_ERROR(LaunchTracePermutation(ipiv_, plan_.n, Permutation(1), stream()));
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchIcmCompose(run_, plan_.n, start_ipiv_, Permutation(0), Permutation(1),
                         At<int32_t>(workspace_, plan_.scratch), ipiv_, limits_, stream()));
  }
  CROUT_RETURN_IF_CUDA_ERROR(LaunchIcmFinalize(run_, stream()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(&context_.report().info, &run_.state->info,
                                             sizeof(int32_t), cudaMemcpyDeviceToHost, stream()));
  return absl::OkStatus();
}

template <class T>
absl::Status IcmJob<T>::Subtract(int64_t r0, int64_t r1, int64_t c0, int64_t c1, int64_t k0,
                                 int64_t k1) {
  const int64_t ld = a_.ld;
  return SubtractProduct<T>(context_.cublas(), Op::kNone, {&a_(r0, k0), r1 - r0, k1 - k0, ld},
                            {&a_(k0, c0), k1 - k0, c1 - c0, ld},
                            {&a_(r0, c0), r1 - r0, c1 - c0, ld});
}

template <class T>
absl::Status IcmJob<T>::Block(int64_t begin, int64_t end) {
  for (int64_t d0 = begin; d0 < end; d0 += plan_.section) {
    const int64_t d1 = EndOf(d0, end);
    CROUT_RETURN_IF_ERROR(DiagonalAndBelow(d0, d1));
    CROUT_RETURN_IF_ERROR(SweepRight(d0, d1, d1, end));
    CROUT_RETURN_IF_ERROR(Subtract(d1, a_.rows, d1, end, d0, d1));
  }
  for (int64_t d0 = begin; d0 < end; d0 += plan_.section) {
    const int64_t d1 = EndOf(d0, end);
    CROUT_RETURN_IF_ERROR(SweepRight(d0, d1, end, a_.cols));
    CROUT_RETURN_IF_ERROR(Subtract(d1, end, end, a_.cols, d0, d1));
  }
  return Subtract(end, a_.rows, end, a_.cols, begin, end);
}

template <class T>
absl::Status IcmJob<T>::DiagonalAndBelow(int64_t begin, int64_t end) {
  if (plan_.sweeps_first) CROUT_RETURN_IF_ERROR(SweepDiagonalAndBelow(begin, end));
  return plan_.searches ? SearchColumns(begin, end) : absl::OkStatus();
}

template <class T>
absl::Status IcmJob<T>::SweepDiagonalAndBelow(int64_t begin, int64_t end) {
  const int64_t index = begin / plan_.section;
  T* const below = At<T>(workspace_, plan_.below);
  const IcmDiagonal<T> diagonal = {
      a_,
      begin,
      end - begin,
      index,
      start_,
      {At<T>(workspace_, plan_.buffers[0]), At<T>(workspace_, plan_.buffers[1])},
      At<unsigned long long>(workspace_, plan_.largest)};
  CROUT_RETURN_IF_CUDA_ERROR(LaunchIcmDiagonal(run_, diagonal, limits_, stream()));
  // Rows of L are columns of unknowns, by U transposed.
  SectionSweeps<T> work;
  work.unknowns = end - begin;
  work.columns = a_.rows - end;
  work.m = diagonal.buffers[0];
  work.second_m = diagonal.buffers[1];
  work.m_row = plan_.section;
  work.m_col = 1;
  work.b = &a_(end, begin);
  work.b_row = a_.ld;
  work.b_col = 1;
  work.x = below;
  work.x_row = work.columns;
  work.x_col = 1;
  work.start = start_;
  work.row = end;
  work.col = begin;
  work.transposed = true;
  work.largest = diagonal.largest;
  work.only_if_swept = true;
  work.sweeps = run_.sweeps + (index + 1) + index * plan_.sections;
  work.sweeps_step = 1;
  if (work.columns > 0) {
    CROUT_RETURN_IF_CUDA_ERROR(LaunchSectionSweeps(run_, work, limits_, stream()));
  }
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchIcmCommit(run_, diagonal, below, limits_.multiprocessors, stream()));
  return absl::OkStatus();
}

template <class T>
absl::Status IcmJob<T>::SearchColumns(int64_t begin, int64_t end) {
  const IcmPanel<T> panel = {a_,
                             begin,
                             end - begin,
                             begin / plan_.section,
                             At<T>(workspace_, plan_.buffers[0]),
                             At<IcmCandidate>(workspace_, plan_.candidates),
                             At<IcmMove>(workspace_, plan_.moves),
                             ipiv_,
                             Origin()};
  CROUT_RETURN_IF_CUDA_ERROR(LaunchIcmPanel(run_, panel, limits_, stream()));
  CROUT_RETURN_IF_CUDA_ERROR(LaunchIcmExchange(run_, panel, limits_, stream()));
  return absl::OkStatus();
}

template <class T>
absl::Status IcmJob<T>::SweepRight(int64_t begin, int64_t end, int64_t from, int64_t to) {
  if (from >= to) return absl::OkStatus();
  SectionSweeps<T> work;
  work.unknowns = end - begin;
  work.columns = to - from;
  work.m = &a_(begin, begin);
  work.m_row = 1;
  work.m_col = a_.ld;
  work.unit = false;
  work.b = work.x = &a_(begin, from);
  work.b_row = work.x_row = 1;
  work.b_col = work.x_col = a_.ld;
  work.start = start_;
  work.row = begin;
  work.col = from;
  work.sweeps = run_.sweeps + begin / plan_.section + from / plan_.section * plan_.sections;
  work.sweeps_step = plan_.sections;
  CROUT_RETURN_IF_CUDA_ERROR(LaunchSectionSweeps(run_, work, limits_, stream()));
  return absl::OkStatus();
}

absl::Status StatusOf(const IcmState& state, const MethodTraits& traits) {
  const auto row = static_cast<int64_t>(state.position >> 21 & 0x1fffff);
  const auto column = static_cast<int64_t>(state.position & 0x1fffff);
  const std::string where =
      absl::StrCat(" (row ", row, ", column ", column, " of the permuted matrix)");
  switch (static_cast<IcmEnd>(state.end)) {
    case IcmEnd::kDone:
      return absl::OkStatus();
    case IcmEnd::kSweepLimit:
      return absl::AbortedError(
          absl::StrCat(traits.name.data(), " did not converge within the sweep limit", where,
                       ". Raise the sweep limit or the tolerance, or use another algorithm"));
    case IcmEnd::kNotFinite:
      return absl::InvalidArgumentError(
          absl::StrCat("the factor exceeds the range of its type: an element is not finite", where,
                       ". Use a method with pivoting or a wider type"));
  }
  return absl::InternalError("the iteration ended in an unknown state");
}

}  // namespace

CudaIcm::CudaIcm(DeviceCore& core, bool pivoting)
    : core_(core), traits_(TraitsOn(core.limits(), pivoting)) {}

absl::StatusOr<IcmPlan> CudaIcm::Plan(DType dtype, int64_t n,
                                      const LuParameters& parameters) const {
  return PlanIcm(dtype, n, parameters, traits_.pivoting, core_.limits());
}

absl::StatusOr<PublishedPlan> CudaIcm::PlanPublishedVariant(DType dtype, int64_t n,
                                                            const LuParameters& parameters) const {
  return PlanPublished(dtype, n, parameters, traits_.supports_pivoting,
                       core_.limits().multiprocessors);
}

absl::StatusOr<size_t> CudaIcm::WorkspaceBytes(DType dtype, int64_t n,
                                               const LuParameters& parameters) const {
  if (parameters.variant == MethodVariant::kPublished) {
    CROUT_ASSIGN_OR_RETURN(const PublishedPlan plan, PlanPublishedVariant(dtype, n, parameters));
    return plan.bytes;
  }
  CROUT_ASSIGN_OR_RETURN(const IcmPlan plan, Plan(dtype, n, parameters));
  return plan.bytes;
}

absl::StatusOr<size_t> CudaIcm::ReportBytes(DType dtype, int64_t n,
                                            const LuParameters& parameters) const {
  int64_t sections = 0;
  if (parameters.variant == MethodVariant::kPublished) {
    CROUT_ASSIGN_OR_RETURN(const PublishedPlan plan, PlanPublishedVariant(dtype, n, parameters));
    sections = plan.sections;
  } else {
    CROUT_ASSIGN_OR_RETURN(const IcmPlan plan, Plan(dtype, n, parameters));
    sections = plan.sections;
  }
  // The counts as int64, and their int32 copies from the device.
  CROUT_ASSIGN_OR_RETURN(const size_t report, MatrixBytes(sections + 2, sections, DType::kFloat64));
  return report + report / 2;
}

double CudaIcm::PredictSeconds(DType dtype, int64_t n) const {
  return kTimesGetrf * core_.Calibrated("getrf", dtype, n, PredictGetrfSeconds(dtype, n));
}

absl::Status CudaIcm::CheckWorkspace(std::span<std::byte> workspace, size_t needed) const {
  if (workspace.size() >= needed) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(traits_.name.data(), " needs ", needed,
                                          " bytes of workspace, got ", workspace.size()));
}

absl::Status CudaIcm::Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                             std::span<std::byte> workspace, const LuParameters& parameters,
                             StopRequested) const {
  Context& cuda = Context::From(context);
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  cuda.report().stop = 0;
  if (parameters.variant == MethodVariant::kPublished) {
    CROUT_ASSIGN_OR_RETURN(const PublishedPlan plan,
                           PlanPublishedVariant(a.dtype, a.rows, parameters));
    CROUT_RETURN_IF_ERROR(CheckWorkspace(workspace, plan.bytes));
    return core_.Observe(DispatchDevice(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return EnqueuePublished<T>(cuda, plan, a.As<T>(), ipiv, workspace, parameters);
    }));
  }
  CROUT_ASSIGN_OR_RETURN(const IcmPlan plan, Plan(a.dtype, a.rows, parameters));
  CROUT_RETURN_IF_ERROR(CheckWorkspace(workspace, plan.bytes));
  return core_.Observe(DispatchDevice(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return IcmJob<T>(cuda, plan, a.As<T>(), ipiv, workspace, parameters).Run();
  }));
}

absl::Status CudaIcm::Finish(ExecutionContext& context, std::span<std::byte> workspace,
                             IterationReport* report) const {
  Context& cuda = Context::From(context);
  const auto read = [&](size_t offset, void* to, size_t bytes) {
    return cuda.ops().CopyToHost(workspace.data() + offset, to, bytes);
  };
  IcmState state;
  CROUT_RETURN_IF_ERROR(read(0, &state, sizeof(state)));
  CROUT_RETURN_IF_ERROR(cuda.Synchronize());
  if (report != nullptr) {
    const int64_t sections = state.sections;
    std::vector<int32_t> sweeps(sections * sections);
    std::vector<int32_t> pivots(sections);
    std::vector<int32_t> bad_elements(state.bad_elements != 0 ? sections : 0);
    CROUT_RETURN_IF_ERROR(read(state.sweeps, sweeps.data(), sweeps.size() * sizeof(int32_t)));
    CROUT_RETURN_IF_ERROR(read(state.pivots, pivots.data(), pivots.size() * sizeof(int32_t)));
    CROUT_RETURN_IF_ERROR(
        read(state.bad_elements, bad_elements.data(), bad_elements.size() * sizeof(int32_t)));
    CROUT_RETURN_IF_ERROR(cuda.Synchronize());
    report->warm = state.warm != 0;
    report->variant = static_cast<MethodVariant>(state.variant);
    report->block_size = static_cast<int>(state.block_size);
    report->section_size = state.section_size;
    report->sections = sections;
    report->sweeps.assign(sweeps.begin(), sweeps.end());
    report->pivots.assign(pivots.begin(), pivots.end());
    report->bad_elements.assign(bad_elements.begin(), bad_elements.end());
  }
  return StatusOf(state, traits_);
}

}  // namespace crout::cuda
