// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/irr_lu.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/irr_lu/grid_lu.h"
#include "kernels/cuda/irr_lu/irr_order.h"
#include "kernels/cuda/irr_lu/large_members.h"
#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/irr_lu/probe_kernels.h"
#include "kernels/cuda/irr_lu/solve_kernels.h"
#include "kernels/cuda/methods.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr double kLaunchSeconds = 2e-5;
constexpr double kFlops = 3e12;  // float64, for batches of small members

// The part of a workspace that is the same on the host and on the device: the order of the members,
// then the offset of each member in the probe's workspace.
struct Tables {
  static size_t OrderBytes(int64_t members) {
    constexpr size_t kAlignment = 16;
    const size_t bytes = static_cast<size_t>(members) * sizeof(int32_t);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  static size_t Bytes(int64_t members) {
    constexpr size_t kAlignment = 256;
    const size_t bytes = OrderBytes(members) + static_cast<size_t>(members) * sizeof(int64_t);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  Tables(std::byte* memory, int64_t members)
      : order(reinterpret_cast<int32_t*>(memory)),
        places(reinterpret_cast<int64_t*>(memory + OrderBytes(members))) {}

  int32_t* order;
  int64_t* places;
};

// Bytes of the probe's workspace, for any members of this extent.
size_t MaxProbeBytes(const BatchExtent& a) {
  constexpr size_t kProbeBytesPerMember = 32;  // two numbers, and the rounding to a multiple of 16
  const size_t wide = SizeOf(WideOf(a.dtype));
  return static_cast<size_t>(a.members) * kProbeBytesPerMember +
         wide * static_cast<size_t>(a.total_cols + a.diagonals) +
         sizeof(int32_t) * static_cast<size_t>(a.total_rows);
}

class CudaIrrLu final : public BatchLu {
 public:
  CudaIrrLu(DeviceCore& core, std::unique_ptr<const LargeMembers> large_members)
      : core_(core), large_members_(std::move(large_members)) {}
  // Streams and handles must be destroyed on the device that created them.
  ~CudaIrrLu() override { (void)cudaSetDevice(core_.ordinal()); }

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<WorkspaceBytes> FactorWorkspaceBytes(const BatchExtent& a) const override {
    const size_t tables = Tables::Bytes(a.members);
    const size_t large = large_members_->WorkspaceBytes(a);
    return WorkspaceBytes{
        .device = tables + MaxProbeBytes(a) + (large == 0 ? 0 : kAlignment) + large,
        .host = tables};
  }
  absl::StatusOr<WorkspaceBytes> SolveWorkspaceBytes(const BatchExtent& lu) const override {
    const size_t order = Tables::OrderBytes(lu.members);
    return WorkspaceBytes{.device = order, .host = order};
  }
  absl::StatusOr<WorkspaceBytes> ErrorWorkspaceBytes(const BatchExtent&) const override {
    return WorkspaceBytes();
  }

  // Assumes that every element belongs to a member of the largest size: an upper bound, exact if
  // all members have that size.
  double PredictFactorSeconds(const BatchExtent& a) const override {
    const double elements = static_cast<double>(a.bytes) / static_cast<double>(SizeOf(a.dtype));
    const double operations = IsComplex(a.dtype) ? 4 : 1;
    return kLaunchSeconds + 2.0 / 3.0 * elements * a.max_diagonal * operations / kFlops;
  }

  absl::Status Factor(ExecutionContext& context, const IrregularBatch& a,
                      std::span<const BatchMember> on_host, const BatchFactors& factors,
                      const Workspace& workspace, StopRequested stop) const override {
    const int64_t members = a.extent.members;
    Context& mine = Context::From(context);
    const Tables made(workspace.host.data(), members);
    const IrrOrder parts = OrderMembers(
        on_host, {made.order, on_host.size()},
        [&](const BatchMember& member) { return large_members_->Has(a.extent.dtype, member); });
    const size_t probe_bytes =
        PlaceIrrProbe(a.extent.dtype, on_host, {made.places, on_host.size()});
    const size_t tables = Tables::Bytes(members);
    assert(tables + probe_bytes <= workspace.device.size());
    CROUT_RETURN_IF_ERROR(
        mine.ops().CopyToDevice(workspace.host.data(), workspace.device.data(), tables));
    const Tables sent(workspace.device.data(), members);
    const IrrProbe probe = {
        workspace.device.data() + tables, sent.places, {sent.order, parts.large()}};
    CROUT_RETURN_IF_CUDA_ERROR(LaunchIrrProbeStart(a, probe, mine.stream()));
    // If no member can be large, no memory is reserved behind the tables.
    const size_t used = std::min((tables + probe_bytes + kAlignment - 1) / kAlignment * kAlignment,
                                 workspace.device.size());
    CROUT_RETURN_IF_ERROR(large_members_->Factor(
        mine, {a, on_host, {made.order, static_cast<size_t>(parts.alone())}, factors},
        workspace.device.subspan(used), stop));
    CROUT_RETURN_IF_ERROR(IrrGetrf(a, factors, parts, sent.order, core_.limits(), mine.stream()));
    CROUT_RETURN_IF_CUDA_ERROR(LaunchIrrProbeFinish(a, factors, probe, mine.stream()));
    return absl::OkStatus();
  }

  absl::Status Solve(ExecutionContext& context, Op op, const IrregularBatch& lu,
                     std::span<const BatchMember> on_host, const BatchFactors& factors,
                     const IrregularBatch& b, const Workspace& workspace,
                     StopRequested) const override {
    Context& mine = Context::From(context);
    auto* const made = reinterpret_cast<int32_t*>(workspace.host.data());
    const IrrOrder parts = OrderMembers(on_host, {made, on_host.size()});
    CROUT_RETURN_IF_ERROR(
        mine.ops().CopyToDevice(made, workspace.device.data(), on_host.size() * sizeof(int32_t)));
    return IrrGetrs(op, lu, factors, b, parts,
                    reinterpret_cast<const int32_t*>(workspace.device.data()), core_.limits(),
                    mine.stream());
  }

  absl::Status BackwardErrors(ExecutionContext& context, Op op, const IrregularBatch& a,
                              const IrregularBatch& x, const IrregularBatch& b, double* errors,
                              const Workspace&) const override {
    const cudaStream_t stream = Context::From(context).stream();
    return DispatchDevice(a.extent.dtype, [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      const BatchSystems<T> systems = {reinterpret_cast<const T*>(a.data), a.members,
                                       reinterpret_cast<const T*>(x.data),
                                       reinterpret_cast<const T*>(b.data), b.members};
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchBackwardErrors(op, systems, a.extent.members, errors, stream));
      return absl::OkStatus();
    });
  }

 private:
  static constexpr size_t kAlignment = 256;

  DeviceCore& core_;
  const std::unique_ptr<const LargeMembers> large_members_;
  const MethodTraits traits_{
      .name = "irr_lu",
      .description = "LU of matrices of different sizes, partial pivoting (Abdelfattah et al.)",
      .operands = {OperandKind::kBatch},
      .types = kAllTypes,
      .unit_diagonal = UnitDiagonal::kL,
      .pivoting = PivotRule::kPartial};
};

}  // namespace

absl::Status IrrGetrf(const IrregularBatch& a, const BatchFactors& factors, const IrrOrder& parts,
                      const int32_t* order, const DeviceLimits& limits, cudaStream_t stream) {
  return DispatchDevice(a.extent.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const IrrLuBatch<T> batch = {
        reinterpret_cast<T*>(a.data), a.members, factors.ipiv, factors.info, {}};
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchGridLu(batch, parts, order + parts.First(MemberTeam::kGrid), stream));
    bool overlap = false;  // with the previous launch, for other members
    for (const MemberTeam team :
         {MemberTeam::kBlock512, MemberTeam::kBlock256, MemberTeam::kBlock128, MemberTeam::kWarp}) {
      const int32_t count = parts.Count(team);
      if (count == 0) continue;
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchMemberLu(batch, team, order + parts.First(team), count, overlap, stream));
      overlap = limits.dependent_launch;
    }
    return absl::OkStatus();
  });
}

absl::Status IrrGetrs(Op op, const IrregularBatch& lu, const BatchFactors& factors,
                      const IrregularBatch& b, const IrrOrder& parts, const int32_t* order,
                      const DeviceLimits& limits, cudaStream_t stream) {
  return DispatchDevice(lu.extent.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const IrrSolveBatch<T> batch = {
        reinterpret_cast<const T*>(lu.data), lu.members, factors.ipiv, factors.info,
        reinterpret_cast<T*>(b.data),        b.members};
    CROUT_RETURN_IF_CUDA_ERROR(LaunchGridSolve(batch, op, b.extent.max_cols, parts,
                                               order + parts.First(MemberTeam::kGrid), stream));
    bool overlap = false;  // with the previous launch, for other members
    for (const MemberTeam team :
         {MemberTeam::kBlock512, MemberTeam::kBlock256, MemberTeam::kBlock128, MemberTeam::kWarp}) {
      const int32_t count = parts.Count(team);
      if (count == 0) continue;
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchMemberSolve(batch, op, team, order + parts.First(team), count, overlap, stream));
      overlap = limits.dependent_launch;
    }
    return absl::OkStatus();
  });
}

size_t PlaceIrrProbe(DType dtype, std::span<const BatchMember> members, std::span<int64_t> places) {
  assert(places.size() == members.size());
  return DispatchDevice(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    size_t bytes = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      places[i] = static_cast<int64_t>(bytes);
      bytes += ProbePart<T>::Bytes(members[i]);
    }
    return bytes;
  });
}

cudaError_t LaunchIrrProbeStart(const IrregularBatch& a, const IrrProbe& probe,
                                cudaStream_t stream) {
  return DispatchDevice(a.extent.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return LaunchProbeStart<T>(
        {reinterpret_cast<T*>(a.data), a.members, probe.workspace, probe.places}, a.extent.members,
        probe.large, stream);
  });
}

cudaError_t LaunchIrrProbeFinish(const IrregularBatch& lu, const BatchFactors& factors,
                                 const IrrProbe& probe, cudaStream_t stream) {
  return DispatchDevice(lu.extent.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return LaunchProbeFinish<T>(
        {reinterpret_cast<T*>(lu.data), lu.members, probe.workspace, probe.places},
        {factors.ipiv, factors.info, factors.pivot_growth, factors.quality,
         factors.pivot_condition},
        lu.extent.members, probe.large, stream);
  });
}

absl::StatusOr<std::unique_ptr<BatchLu>> MakeIrrLu(DeviceCore& core) {
  CROUT_ASSIGN_OR_RETURN(auto large_members, LargeMembers::Create(core.limits()));
  return std::make_unique<CudaIrrLu>(core, std::move(large_members));
}

}  // namespace crout::cuda
