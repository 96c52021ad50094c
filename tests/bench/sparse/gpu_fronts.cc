// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/sparse/gpu_fronts.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_handles.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/multifrontal/assembly.h"
#include "kernels/cuda/multifrontal/factor_block.h"
#include "kernels/cuda/multifrontal/front_lu.h"
#include "kernels/cuda/multifrontal/inspection.h"
#include "kernels/cuda/multifrontal/level_plan.h"
#include "kernels/cuda/multifrontal/small_front.h"
#include "kernels/cuda/multifrontal/traversal.h"

namespace crout {
namespace {

void CheckCublas(cublasStatus_t code) { Check(cuda::CublasStatus(code, "cuBLAS")); }
void CheckCusolver(cusolverStatus_t code) { Check(cuda::CusolverStatus(code, "cuSOLVER")); }

cuda::Event TimedEvent() {
  cudaEvent_t event = nullptr;
  CheckCuda(cudaEventCreate(&event));
  return cuda::Event(event);
}

// kStreams streams with handles of cuSOLVER and cuBLAS.
class VendorStreams {
 public:
  VendorStreams(int64_t largest, double* any) : info_(kStreams) {
    for (int s = 0; s < kStreams; ++s) {
      streams_.push_back(Check(cuda::MakeStream()));
      done_.push_back(Check(cuda::MakeEvent()));
      cublas_.push_back(Check(cuda::MakeCublasHandle(streams_[s].get())));
      cusolver_.push_back(Check(cuda::MakeCusolverHandle(streams_[s].get())));
      const int d1 = static_cast<int>(largest);
      int doubles = 0;
      CheckCusolver(cusolverDnDgetrf_bufferSize(cusolver_[s].get(), d1, d1, any, d1, &doubles));
      workspaces_.emplace_back(static_cast<size_t>(doubles));
    }
  }

  // Makes all streams wait for the work on `stream`. Join() makes `stream` wait for all streams.
  void Fork(cudaStream_t stream) {
    CheckCuda(cudaEventRecord(done_[0].get(), stream));
    for (const cuda::Stream& one : streams_) {
      CheckCuda(cudaStreamWaitEvent(one.get(), done_[0].get()));
    }
  }
  void Join(cudaStream_t stream) {
    for (int s = 0; s < kStreams; ++s) {
      CheckCuda(cudaEventRecord(done_[s].get(), streams_[s].get()));
      CheckCuda(cudaStreamWaitEvent(stream, done_[s].get()));
    }
  }

  // Enqueues the partial factorization of one front on stream s: P F11 = L11 U11, U12, L21 and
  // F22 - L21 U12.
  void Factor(int s, const cuda::Front& front, double* factor, double* contributions,
              int32_t* ipiv) {
    constexpr double kOne = 1, kMinusOne = -1;
    const MatrixView<double> panel = front.Panel(factor);
    const int d1 = front.d1, d2 = front.d2, ld = d1 + d2;
    int32_t* const pivots = ipiv + front.first;
    CheckCusolver(cusolverDnDgetrf(cusolver_[s].get(), d1, d1, panel.data, ld, workspaces_[s].get(),
                                   pivots, info_.get() + s));
    if (d2 == 0) return;
    double* const u12 = front.U12(factor).data;
    double* const l21 = panel.data + d1;
    CheckCusolver(cusolverDnDlaswp(cusolver_[s].get(), d2, u12, d1, 1, d1, pivots, 1));
    const cublasHandle_t cublas = cublas_[s].get();
    CheckCublas(cublasDtrsm(cublas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                            CUBLAS_DIAG_UNIT, d1, d2, &kOne, panel.data, ld, u12, d1));
    CheckCublas(cublasDtrsm(cublas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                            CUBLAS_DIAG_NON_UNIT, d2, d1, &kOne, panel.data, ld, l21, ld));
    CheckCublas(cublasDgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, d2, d2, d1, &kMinusOne, l21, ld, u12,
                            d1, &kOne, front.Contribution(contributions).data, d2));
  }

 private:
  // Handles must be destroyed before their streams, so the streams are declared first.
  std::vector<cuda::Stream> streams_;
  std::vector<cuda::Event> done_;
  std::vector<cuda::CublasHandle> cublas_;
  std::vector<cuda::CusolverHandle> cusolver_;
  std::vector<DeviceArray<double>> workspaces_;
  DeviceArray<int> info_;
};

// Runs the method's numeric phase level by level, with the method's kernels or the vendor's
// routines, in the memory of an existing factor.
class Fronts {
 public:
  Fronts(cuda::Context& context, const Analysis& analysis, const AnySparse& a,
         std::span<std::byte> factor)
      : context_(context),
        kernels_(Check(cuda::LuPanelKernels::Create(context.core().limits()))),
        analysis_(analysis),
        a_(a),
        plan_(analysis),
        traversal_(analysis, plan_, /*depth=*/0),
        block_(analysis, DType::kFloat64),
        factor_(factor.data()),
        tree_(cuda::FrontTreeOf(analysis, block_, factor_)),
        contributions_(traversal_.contribution_entries()),
        border_(analysis.border),
        of_row_(analysis.n),
        of_column_(analysis.n),
        front_of_(analysis.n),
        ipiv_(analysis.n),
        vendors_ipiv_(analysis.n),
        info_(analysis.fronts()),
        least_(analysis.n),
        raised_(analysis.n),
        report_(1),
        large_(plan_.FrontsWithColumns(analysis, cuda::kLargeForPermutations)),
        large_on_device_(large_),
        f11_(analysis.fronts()),
        f21_(analysis.fronts()),
        f12_(analysis.fronts()),
        f22_(analysis.fronts()),
        workspace_(cuda::FrontLuWorkspaceBytes(kernels_, analysis, plan_, DType::kFloat64)),
        cublas_(cuda::FrontLuCublasBytes(plan_)) {
    memory_.analysis = &analysis_;
    memory_.fronts = traversal_.order();
    memory_.factor = values();
    memory_.contributions = contributions_.get();
    memory_.members = {f11_.get(), f21_.get(), f12_.get(), f22_.get()};
    memory_.order = Indices(block_.order);
    memory_.ipiv = ipiv_.get();
    memory_.info = info_.get();
    memory_.least = {least_.get(), raised_.get()};
    memory_.workspace = {workspace_.get(), workspace_.count()};
    memory_.cublas = {cublas_.get(), cublas_.count()};
    CheckCuda(cudaDeviceSynchronize());  // the copies above use another stream
    CheckCuda(LaunchPlacePositions(tree_, analysis.n, Indices(block_.rows), Indices(block_.columns),
                                   Positions(), stream()));
    CheckCuda(LaunchPlaceMembers(tree_, memory_.members, stream()));
  }

  cudaStream_t stream() const { return context_.stream(); }
  int64_t levels() const { return analysis_.levels(); }
  double* values() const { return reinterpret_cast<double*>(factor_); }

  // Clears the factor and writes A's entries to its memory.
  void Start() {
    CheckCuda(cudaMemsetAsync(report_.get(), 0, sizeof(cuda::NumericReport), stream()));
    CheckCuda(cudaMemsetAsync(raised_.get(), 0, analysis_.n, stream()));
    CheckCuda(cudaMemsetAsync(factor_, 0, analysis_.factor_entries() * sizeof(double), stream()));
    const cuda::FrontScales scales = cuda::FrontScalesOf(analysis_, block_, factor_);
    CheckCuda(LaunchPutEntries(tree_, Positions(), border_.get(), a_, scales, values(), stream()));
    const cuda::PivotBounds bounds = {PivotPerturbation(DType::kFloat64, true),
                                      PivotPerturbation(DType::kFloat64, false)};
    CheckCuda(cuda::LaunchMinPivots<double>(tree_, a_, scales, Indices(block_.columns), {}, bounds,
                                            least_.get(), report_.get(), stream()));
    CheckCuda(cudaStreamSynchronize(stream()));
  }

  // Factors a level in batches, as the method does.
  void InBatches(int64_t level) {
    const std::span<const cuda::FrontBatch> all = plan_.batches.Level(level);
    size_t large = all.size();
    while (large > 0 && cuda::IsSmallFront(all[large - 1].size)) --large;
    Assemble(level, all.first(large));
    cuda::SmallFronts small;
    for (const cuda::FrontBatch& batch : all.subspan(large)) {
      small.Add(batch.begin, batch.end, batch.size, /*awaits=*/false);
    }
    CheckCuda(LaunchSmallFronts(tree_, memory_.order, small, values(), contributions_.get(),
                                ipiv_.get(), memory_.least, {}, stream()));
    for (const cuda::FrontBatch& batch : all.first(large)) {
      Check(EnqueueFrontLu(context_, kernels_, memory_, StepOf(level), batch, /*careful=*/false,
                           [] { return false; }));
    }
  }

  // Factors a level front by front with the vendor's routines. Assembles all fronts, including
  // small ones, as in batches.
  void OneByOne(int64_t level, VendorStreams& vendors) {
    const std::span<const cuda::FrontBatch> all = plan_.batches.Level(level);
    Assemble(level, all);
    vendors.Fork(stream());
    for (int32_t i = analysis_.level_start[level]; i < analysis_.level_start[level + 1]; ++i) {
      vendors.Factor(i % kStreams, cuda::MakeFront(analysis_, plan_.order[i], StepOf(level).shift),
                     values(), contributions_.get(), vendors_ipiv_.get());
    }
    vendors.Join(stream());
  }

  // Computes the permutations that solves use, from the interchanges of OneByOne() if `by_vendor`,
  // otherwise of InBatches().
  void Finish(bool by_vendor) {
    CheckCuda(cudaDeviceSynchronize());
    if (by_vendor) {
      const std::vector<int32_t> made = vendors_ipiv_.Download();
      ipiv_.CopyFrom(DeviceArray<int64_t>(std::vector<int64_t>(made.begin(), made.end())));
      CheckCuda(cudaDeviceSynchronize());
    }
    const cuda::PivotRecord<double> record = {
        ipiv_.get(),
        reinterpret_cast<int32_t*>(factor_ + block_.pivots),
        reinterpret_cast<int32_t*>(factor_ + block_.permutation),
        reinterpret_cast<double*>(factor_ + block_.diagonal),
        large_on_device_.get(),
        static_cast<int>(large_.size())};
    CheckCuda(LaunchInspectPivots(tree_, static_cast<int>(analysis_.fronts()), analysis_.n,
                                  border_.get(), values(), memory_.least, record, report_.get(),
                                  stream()));
    CheckCuda(cudaStreamSynchronize(stream()));
  }

 private:
  const int32_t* Indices(size_t offset) const {
    return reinterpret_cast<const int32_t*>(factor_ + offset);
  }
  // The steps of the traversal run from the last level to the first.
  const cuda::TraversalStep& StepOf(int64_t level) const {
    return traversal_.steps()[levels() - 1 - level];
  }
  cuda::FrontPositions Positions() const {
    return {of_row_.get(), of_column_.get(), front_of_.get()};
  }

  void Assemble(int64_t level, std::span<const cuda::FrontBatch> batches) {
    const cuda::TraversalStep& step = StepOf(level);
    CheckCuda(cudaMemsetAsync(contributions_.get() + step.base, 0, step.entries * sizeof(double),
                              stream()));
    cuda::ForSets(
        batches, memory_.order, cuda::kColumnsOfExtendAdd, [&](const cuda::FrontSet& set) {
          if (set.children == 0) return;
          CheckCuda(LaunchExtendAdd(tree_, set, values(), contributions_.get(), stream()));
        });
  }

  cuda::Context& context_;
  const cuda::LuPanelKernels kernels_;
  const Analysis& analysis_;
  const AnySparse a_;
  const cuda::LevelPlan plan_;
  const cuda::Traversal traversal_;
  const cuda::FactorBlock block_;
  std::byte* const factor_;
  const cuda::FrontTree tree_;
  DeviceArray<double> contributions_;
  DeviceArray<int32_t> border_, of_row_, of_column_, front_of_;
  DeviceArray<int64_t> ipiv_;
  DeviceArray<int32_t> vendors_ipiv_;
  DeviceArray<int32_t> info_;
  DeviceArray<double> least_;
  DeviceArray<uint8_t> raised_;
  DeviceArray<cuda::NumericReport> report_;
  const std::vector<int32_t> large_;  // front numbers
  DeviceArray<int32_t> large_on_device_;
  DeviceArray<BatchMember> f11_, f21_, f12_, f22_;
  DeviceArray<std::byte> workspace_, cublas_;
  cuda::FrontMemory<double> memory_;
};

// Milliseconds of each level, by events, and of all levels, by the host's clock.
struct Times {
  std::vector<double> levels;
  double whole = 0;
};

template <class F>
Times TimeLevels(Fronts& fronts, F&& level) {
  fronts.Start();
  std::vector<cuda::Event> marks(fronts.levels() + 1);
  for (cuda::Event& mark : marks) mark = TimedEvent();
  Times times;
  times.whole = 1e3 * Time([&] {
                  CheckCuda(cudaEventRecord(marks.back().get(), fronts.stream()));
                  for (int64_t v = fronts.levels() - 1; v >= 0; --v) {
                    level(v);
                    CheckCuda(cudaEventRecord(marks[v].get(), fronts.stream()));
                  }
                  CheckCuda(cudaDeviceSynchronize());
                });
  for (int64_t v = 0; v < fronts.levels(); ++v) {
    float ms = 0;
    CheckCuda(cudaEventElapsedTime(&ms, marks[v + 1].get(), marks[v].get()));
    times.levels.push_back(ms);
  }
  return times;
}

// Adds the smallest, median and largest size to `row` as NAME_least, NAME and NAME_most.
void AddSpread(const std::string& name, std::vector<int64_t> sizes, Json& row) {
  std::sort(sizes.begin(), sizes.end());
  row[name + "_least"] = sizes.front();
  row[name] = sizes[sizes.size() / 2];
  row[name + "_most"] = sizes.back();
}

double MedianOf(const std::vector<Times>& rounds, int64_t level) {
  std::vector<double> ms;
  for (const Times& times : rounds) ms.push_back(times.levels[level]);
  return Median(ms);
}

}  // namespace

FrontsResult BenchFronts(ExecutionContext& context, const Analysis& analysis, const AnySparse& a,
                         std::span<std::byte> factor, const std::string& name, int rounds,
                         const std::function<double()>& error) {
  Fronts fronts(cuda::Context::From(context), analysis, a, factor);
  int64_t largest = 1;
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    largest = std::max(largest, analysis.eliminated(f));
  }
  VendorStreams vendors(largest, fronts.values());
  std::vector<Times> ours, theirs;
  double our_error = 0, their_error = 0;
  for (int round = -1; round < rounds; ++round) {
    const Times batches = TimeLevels(fronts, [&](int64_t level) { fronts.InBatches(level); });
    if (round < 0) {
      fronts.Finish(/*by_vendor=*/false);
      our_error = error();
    }
    const Times calls = TimeLevels(fronts, [&](int64_t level) { fronts.OneByOne(level, vendors); });
    if (round < 0) {  // warm-up
      fronts.Finish(/*by_vendor=*/true);
      their_error = error();
      continue;
    }
    ours.push_back(batches);
    theirs.push_back(calls);
  }

  FrontsResult result;
  result.levels = Json::array();
  for (int64_t level = analysis.levels() - 1; level >= 0; --level) {
    std::vector<int64_t> d1, d2;
    double flops = 0;
    for (int32_t i = analysis.level_start[level]; i < analysis.level_start[level + 1]; ++i) {
      const int32_t f = analysis.level_front[i];
      d1.push_back(analysis.eliminated(f));
      d2.push_back(analysis.bordered(f));
      const auto p = static_cast<double>(d1.back());
      const auto q = static_cast<double>(d2.back());
      flops += 2.0 / 3 * p * p * p + 2 * p * p * q + 2 * p * q * q;
    }
    Json row = {{"matrix", name}, {"level", level}, {"fronts", std::ssize(d1)}};
    AddSpread("d1", d1, row);
    AddSpread("d2", d2, row);
    row["gflop"] = 1e-9 * flops;
    row["multifrontal_ms"] = MedianOf(ours, level);
    row["one_by_one_ms"] = MedianOf(theirs, level);
    result.levels.push_back(std::move(row));
  }
  std::vector<double> our_ms, their_ms, faster;
  for (int round = 0; round < rounds; ++round) {
    our_ms.push_back(ours[round].whole);
    their_ms.push_back(theirs[round].whole);
    faster.push_back(their_ms.back() / our_ms.back());
  }
  const auto [least, most] = std::minmax_element(faster.begin(), faster.end());
  result.one_by_one = {{"matrix", name},
                       {"rounds", rounds},
                       {"fronts", analysis.fronts()},
                       {"levels", analysis.levels()},
                       {"multifrontal_ms", Median(our_ms)},
                       {"one_by_one_ms", Median(their_ms)},
                       {"over_one_by_one", Median(faster)},
                       {"over_one_by_one_least", *least},
                       {"over_one_by_one_most", *most},
                       {"multifrontal_backward_error", our_error},
                       {"one_by_one_backward_error", their_error}};
  return result;
}

}  // namespace crout
