// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/methods.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/host/icm/icm_run.h"
#include "kernels/host/icm/icm_start.h"
#include "kernels/host/icm/published_run.h"
#include "kernels/numerics/permutation.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

// Small sections need less work, but there are more of them. Measured at n = 1089, float64, four
// cores, threshold pivoting: 0.44 s with sections of 32, 0.59 s with 64, 1.0 s with 128, 1.6 s with
// 256 (the published size).
constexpr int64_t kSectionSize = 64;
// The published implementation was fastest with blocks of 32 x 32 threads.
constexpr int kPublishedBlock = 32;
constexpr size_t kAlignment = 64;

constexpr size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

int BlockOf(const LuParameters& parameters) {
  if (parameters.variant != MethodVariant::kPublished) return 0;
  return parameters.block_size > 0 ? parameters.block_size : kPublishedBlock;
}

SectionGrid GridFor(int64_t n, const LuParameters& parameters) {
  const int block = BlockOf(parameters);
  const int64_t by_variant = block > 0 ? PublishedSectionSize(n, block) : kSectionSize;
  const int64_t size = parameters.section_size > 0 ? parameters.section_size : by_variant;
  return {n, std::clamp<int64_t>(size, 1, std::max<int64_t>(1, n))};
}

// Sizes, in bytes, of the workspace's parts, in order.
struct Sizes {
  size_t record = 0;  // the RunRecord
  size_t a = 0;
  size_t sums = 0;  // published variant only
  size_t next = 0;
  size_t strips = 0;
};

absl::StatusOr<Sizes> ComputeLayout(DType dtype, const SectionGrid& grid,
                                    const LuParameters& parameters, int cores) {
  Sizes layout;
  CROUT_ASSIGN_OR_RETURN(layout.a, MatrixBytes(grid.n, grid.n, dtype));
  CROUT_ASSIGN_OR_RETURN(layout.next, MatrixBytes(grid.size, grid.size, dtype));
  CROUT_ASSIGN_OR_RETURN(layout.strips, MatrixBytes(grid.size, kSweepTile * cores, dtype));
  layout.record = Aligned(RunRecordBytes(grid));
  layout.a = Aligned(layout.a);
  if (parameters.variant == MethodVariant::kPublished) layout.sums = layout.a;
  layout.next = Aligned(layout.next);
  return layout;
}

class HostIcm final : public LuAlgorithm {
 public:
  HostIcm(Executor& executor, const MethodTraits& traits) : executor_(executor), traits_(traits) {}

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters& parameters) const override {
    CROUT_ASSIGN_OR_RETURN(
        const Sizes layout,
        ComputeLayout(dtype, GridFor(n, parameters), parameters, executor_.budget().total()));
    ByteSum sum;
    sum.Add(layout.record).Add(layout.a).Add(layout.sums);
    return sum.Add(layout.next).Add(layout.strips).total();
  }

  absl::StatusOr<size_t> ReportBytes(DType, int64_t n,
                                     const LuParameters& parameters) const override {
    const int64_t sections = GridFor(n, parameters).count();
    return MatrixBytes(sections + 2, sections, DType::kFloat64);  // the elements are int64
  }

  // Cost of a cold start without pivots: about s sweeps per section of order s, each over half of
  // the section on average.
  double PredictSeconds(DType dtype, int64_t n) const override {
    const Width width = WidthFor(n * n);
    const int cores = width == Width::kAllCores ? executor_.budget().total() : 1;
    const auto size = static_cast<double>(GridFor(n, {}).size);
    const double sweeps = static_cast<double>(n) * static_cast<double>(n) * size * size;
    return BlockedLuSeconds(dtype, n, width, cores, kSweepTile) +
           sweeps / (4 * kReferenceFlopsPerCore * RateFactor(dtype) * cores);
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters& parameters,
                      StopRequested stop) const override {
    CROUT_RETURN_IF_ERROR(CheckStart(a, parameters));
    const SectionGrid grid = GridFor(a.rows, parameters);
    auto* record = new (workspace.data())
        RunRecord{.grid = grid, .block_size = BlockOf(parameters), .variant = parameters.variant};
    std::fill_n(record->section_sweeps(), record->counts(), 0);
    record->warm = parameters.start.has_value() ? 1 : 0;
    CROUT_ASSIGN_OR_RETURN(const Sizes layout,
                           ComputeLayout(a.dtype, grid, parameters, executor_.budget().total()));
    executor_.Run(WidthFor(a.rows * a.cols), [&](int cores) {
      DispatchDType(a.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        std::byte* memory = workspace.data() + layout.record;
        IcmBuffers<T> buffers;
        buffers.lu = a.As<T>();
        buffers.a = {reinterpret_cast<T*>(memory), a.rows, a.cols, a.rows};
        memory += layout.a;
        auto* const sums = reinterpret_cast<T*>(memory);
        memory += layout.sums;
        buffers.next = reinterpret_cast<T*>(memory);
        buffers.strips = reinterpret_cast<T*>(memory + layout.next);
        context.report().info = static_cast<int32_t>(
            Run(buffers, sums, ipiv, parameters, cores, context.report(), stop, *record));
      });
    });
    return absl::OkStatus();
  }

  absl::Status Finish(ExecutionContext&, std::span<std::byte> workspace,
                      IterationReport* report) const override {
    return FinishRun(*reinterpret_cast<const RunRecord*>(workspace.data()), report);
  }

 private:
  static absl::Status CheckStart(const AnyMatrix& a, const LuParameters& parameters) {
    if (!parameters.start.has_value()) return absl::OkStatus();
    const AnyMatrix& lu = parameters.start->lu;
    if (lu.rows == a.rows && lu.cols == a.cols && lu.dtype == a.dtype) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the start has order ", lu.rows, " and type ", ToAbsl(NameOf(lu.dtype)),
                     "; the matrix has order ", a.rows, " and type ", ToAbsl(NameOf(a.dtype)),
                     ". Use a start of the same order and type"));
  }

  // The published variant uses the interval rule. A warm start keeps its pivots as long as the
  // threshold rule accepts them.
  PivotCriterion DefaultCriterion(const LuParameters& parameters) const {
    if (parameters.variant == MethodVariant::kPublished && traits_.supports_pivoting) {
      return {.rule = PivotRule::kInterval};
    }
    const bool keeps = traits_.supports_pivoting && parameters.start.has_value();
    return {.rule = keeps ? PivotRule::kThreshold : traits_.pivoting};
  }

  // Copies A to the workspace, puts the estimate in its place and runs the method.
  template <class T>
  int64_t Run(const IcmBuffers<T>& buffers, T* sums, int64_t* ipiv, const LuParameters& parameters,
              int cores, DeviceReport& report, StopRequested stop, RunRecord& record) const {
    const int64_t n = buffers.lu.rows;
    for (int64_t i = 0; i < n; ++i) ipiv[i] = i + 1;
    if (parameters.start.has_value()) std::copy_n(parameters.start->ipiv, n, ipiv);
    std::vector<int64_t> permutation = PermutationOf(ipiv, n);
    CopyPermuted(cores, buffers.lu, permutation, buffers.a);
    if (parameters.start.has_value()) FillEstimate(cores, *parameters.start, buffers.lu);
    const int64_t limit =
        parameters.sweep_limit > 0 ? parameters.sweep_limit : SweepBound(record.grid.size);
    const PivotCriterion criterion = parameters.pivoting.value_or(DefaultCriterion(parameters));
    const Tolerances<RealPart<T>> tolerances(parameters);
    int64_t info = 0;
    if (parameters.variant == MethodVariant::kPublished) {
      std::fill_n(sums, n * n, T{0});
      const int64_t size = record.grid.size;
      const PublishedBuffers<T> published{
          buffers.lu, buffers.a, {sums, n, n, n}, {buffers.next, size, size, size}, buffers.strips};
      info = RunPublished<T>(published, permutation, {criterion, tolerances, limit, cores}, report,
                             stop, record);
    } else {
      info = IcmRun<T>(buffers, permutation, {criterion, tolerances, limit, cores}, report, stop,
                       record)
                 .Run();
    }
    InterchangesOf(permutation, ipiv);
    return info;
  }

  Executor& executor_;
  const MethodTraits traits_;
};

}  // namespace

std::unique_ptr<LuAlgorithm> MakeIcm(Executor& executor) {
  return std::make_unique<HostIcm>(
      executor, MethodTraits{.name = "icm",
                             .description = "iterative Crout's method, no pivoting (Cejka 2023)",
                             .types = kAllTypes,
                             .unit_diagonal = UnitDiagonal::kU,
                             .pivoting = PivotRule::kNone,
                             .block_sizes = {8, 32},
                             .iterative = true,
                             .supports_absolute_tolerance = true,
                             .variants = {MethodVariant::kFast, MethodVariant::kPublished},
                             .stoppable = true});
}

std::unique_ptr<LuAlgorithm> MakeIcmpp(Executor& executor) {
  return std::make_unique<HostIcm>(
      executor, MethodTraits{.name = "icmpp",
                             .description = "iterative Crout's method, pivoting (Cejka 2023)",
                             .types = kAllTypes,
                             .unit_diagonal = UnitDiagonal::kU,
                             .pivoting = PivotRule::kPartial,
                             .supports_pivoting = true,
                             .block_sizes = {8, 32},
                             .iterative = true,
                             .supports_absolute_tolerance = true,
                             .variants = {MethodVariant::kFast, MethodVariant::kPublished},
                             .stoppable = true});
}

}  // namespace crout::host
