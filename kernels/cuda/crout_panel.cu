#include "kernels/cuda/crout_panel.h"

#include <algorithm>
#include <limits>

#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/panel_team.cuh"

namespace crout {
namespace {

constexpr unsigned kAll = 0xffffffffU;
constexpr int kNowhere = std::numeric_limits<int>::max();
constexpr int kGridThreads = 256;
// Columns that share one copy of the code: registers need indices known to the compiler.
constexpr int kStride = 8;

struct Candidate {
  unsigned long long key;
  int position;
};

// The largest key's candidate; of equal ones the first row, as LAPACK's iamax chooses.
__device__ Candidate WarpBest(Candidate mine) {
  const auto high = static_cast<unsigned>(mine.key >> 32);
  const unsigned best_high = __reduce_max_sync(kAll, high);
  const unsigned low = high == best_high ? static_cast<unsigned>(mine.key) : 0;
  const unsigned best_low = __reduce_max_sync(kAll, low);
  const unsigned long long key = (static_cast<unsigned long long>(best_high) << 32) | best_low;
  return {key, __reduce_min_sync(kAll, mine.key == key ? mine.position : kNowhere)};
}

__device__ bool Better(const Candidate& a, const Candidate& b) {
  return a.key > b.key || (a.key == b.key && a.position < b.position);
}

// In every thread.
template <int kThreads>
__device__ Candidate BlockBest(Candidate mine) {
  __shared__ Candidate warps[kThreads / kWarp];
  const Candidate best = WarpBest(mine);
  const int lane = threadIdx.x % kWarp;
  if (lane == 0) warps[threadIdx.x / kWarp] = best;
  __syncthreads();
  return WarpBest(lane < kThreads / kWarp ? warps[lane] : Candidate{0, kNowhere});
}

struct Pivot {
  int block;
  int position;
  bool diagonal;  // the row stays where it is
};

__device__ bool KeepsDiagonal(const PivotCriterion& pivoting, double diagonal, double largest) {
  switch (pivoting.rule) {
    case PivotRule::kNone:
      return true;
    case PivotRule::kPartial:
      break;
    case PivotRule::kInterval:
      return diagonal > pivoting.low && diagonal <= pivoting.high;
    case PivotRule::kThreshold:
      return diagonal > 0 && diagonal >= pivoting.threshold * largest;
  }
  return false;
}

// By warp 0 of every block, each for itself: the same slots, the same choice.
template <class Team>
__device__ Pivot ChoosePivot(Team& team, int parity, int step, const PivotCriterion& pivoting) {
  Candidate mine = {0, kNowhere};
  int mine_block = 0;
  int diagonal_block = -1;
  for (int block = threadIdx.x; block < team.size(); block += kWarp) {
    const PanelOffer offer = team.Of(parity, block).offer;
    const Candidate other = {offer.best_key, offer.best_position};
    if (Better(other, mine)) {
      mine = other;
      mine_block = block;
    }
    if (offer.diagonal_position == step) diagonal_block = block;
  }
  const Candidate best = WarpBest(mine);
  const unsigned holder = __ballot_sync(kAll, mine.position == best.position);
  const int best_block = __shfl_sync(kAll, mine_block, __ffs(holder) - 1);
  if (pivoting.rule == PivotRule::kPartial) return {best_block, best.position, false};
  diagonal_block = __reduce_max_sync(kAll, diagonal_block);
  const double diagonal = fabs(double{team.Of(parity, diagonal_block).diagonal_row[0]});
  if (KeepsDiagonal(pivoting, diagonal, FromBits(best.key))) return {diagonal_block, step, true};
  return {best_block, best.position, false};
}

template <class T, int kWidth>
struct StepResult {
  T u[kWidth];  // u[j]: row k of U in column k + j, 0 beyond the panel; u[0] is not used
  int position;
};

// One row of the panel in one thread. Before step k, values[j] is its element in column k + j; a
// step turns the array left, and what it finished comes in at the end. The steps that share a copy
// of the code turn only the kCount elements that are not finished before them.
template <class T, int kWidth>
struct PanelRow {
  T values[kWidth];
  int position;  // where it belongs now, rows counted from the panel's first; -1: no row

  // Where column j lies after the last step.
  static constexpr int Finished(int j) { return kWidth - (j / kStride + 1) * kStride + j % kStride; }
};

template <int kCount, class T, int kWidth>
__device__ void Tell(PanelSlot<T, kWidth>& slot, const PanelRow<T, kWidth>& row,
                     const Candidate& best, int step) {
  if (row.position == best.position) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) slot.best_row[j] = row.values[j];
  }
  if (row.position == step) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) slot.diagonal_row[j] = row.values[j];
    slot.offer.diagonal_position = step;
  }
  if (threadIdx.x == 0) {
    slot.offer.best_key = best.key;
    slot.offer.best_position = best.position;
  }
}

// Row k of U in every block; block 0 keeps the books.
template <int kCount, class T, int kWidth, class Team>
__device__ void FinishPivotRow(Team& team, int parity, int step, const CroutPanel<T>& panel,
                               StepResult<T, kWidth>* result, int* first_zero) {
  const Pivot pivot = ChoosePivot(team, parity, step, panel.pivoting);
  const auto& slot = team.Of(parity, pivot.block);
  const T* row = pivot.diagonal ? slot.diagonal_row : slot.best_row;
  const int lane = threadIdx.x;
  const T mine = lane < kCount ? row[lane] : T{0};
  const T l = __shfl_sync(kAll, mine, 0);
  const bool open = lane < kWidth - step;  // the elements behind are finished
  if (lane < kCount) result->u[lane] = l == 0 || !open ? T{0} : mine / l;
  if (lane != 0) return;
  result->position = pivot.position;
  if (l == 0 && *first_zero == 0) *first_zero = step + 1;
  if (blockIdx.x == 0) panel.ipiv[panel.begin + step] = panel.begin + pivot.position + 1;
}

template <int kCount, class T, int kWidth>
__device__ void Eliminate(PanelRow<T, kWidth>& row, const StepResult<T, kWidth>& result, int step) {
  const T l = row.values[0];
  if (row.position == result.position) {
#pragma unroll
    for (int j = 1; j < kCount; ++j) {
      row.values[j - 1] = j < kWidth - step ? result.u[j] : row.values[j];
    }
    row.position = step;
  } else {
    const T factor = row.position >= step ? l : T{0};  // a finished row just turns
    if (row.position == step) row.position = result.position;
#pragma unroll
    for (int j = 1; j < kCount; ++j) row.values[j - 1] = row.values[j] - factor * result.u[j];
  }
  row.values[kCount - 1] = l;
}

template <int kCount, class T, int kWidth>
__device__ void Turn(PanelRow<T, kWidth>& row) {
  const T first = row.values[0];
#pragma unroll
  for (int j = 1; j < kCount; ++j) row.values[j - 1] = row.values[j];
  row.values[kCount - 1] = first;
}

// Steps [kFrom, kWidth) of the panel, with the registers that they still need.
template <int kFrom, int kThreads, class T, int kWidth, class Team>
__device__ void RunSteps(Team& team, PanelRow<T, kWidth>& row, const CroutPanel<T>& panel,
                         StepResult<T, kWidth>* result, int* first_zero) {
  if constexpr (kFrom < kWidth) {
    constexpr int kCount = kWidth - kFrom;
    const int width = static_cast<int>(panel.a.cols);
    if (kFrom >= width) return;
#pragma unroll 1
    for (int step = kFrom; step < kFrom + kStride; ++step) {
      if (step >= width) {
        Turn<kCount>(row);
        continue;
      }
      const int parity = step % 2;
      const bool open = row.position >= step;
      const Candidate best = BlockBest<kThreads>(
          {open ? AbsBits(double{row.values[0]}) : 0, open ? row.position : kNowhere});
      Tell<kCount>(team.Own(parity), row, best, step);
      team.Meet(parity, static_cast<unsigned>(2 * panel.begin + step + 1));
      if (threadIdx.x < kWarp) {
        FinishPivotRow<kCount>(team, parity, step, panel, result, first_zero);
      }
      __syncthreads();
      Eliminate<kCount>(row, *result, step);
    }
    RunSteps<kFrom + kStride, kThreads>(team, row, panel, result, first_zero);
  }
}

template <class T, int kWidth, int kThreads, class Team>
__device__ void FactorPanel(Team team, const CroutPanel<T>& panel) {
  __shared__ StepResult<T, kWidth> result;
  if (panel.control->halt != 0) return;  // set between kernels: all blocks see the same
  const bool keeper = blockIdx.x == 0 && threadIdx.x == 0;
  const bool stop = keeper && *panel.stop != 0;
  const MatrixView<T>& a = panel.a;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const bool exists = index < a.rows;
  PanelRow<T, kWidth> row;
  row.position = exists ? static_cast<int>(index) : -1;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    row.values[j] = exists && j < a.cols ? a(index, j) : T{0};
  }
  if (threadIdx.x == 0) {
    team.Own(0).offer.diagonal_position = -1;
    team.Own(1).offer.diagonal_position = -1;
  }
  int first_zero = 0;
  RunSteps<0, kThreads>(team, row, panel, &result, &first_zero);
  // Every block has read its rows: it needed all of them before the last meeting.
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    if (exists && j < a.cols) a(row.position, j) = row.values[PanelRow<T, kWidth>::Finished(j)];
  }
  team.Leave();
  if (!keeper) return;
  if (first_zero != 0 && panel.control->info == 0) {
    panel.control->info = static_cast<int>(panel.begin) + first_zero;
  }
  if (stop) Halt(panel.control);
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kGridThreads, 2)
    CroutPanelGridKernel(const CroutPanel<T> panel) {
  using Slot = PanelSlot<T, kWidth>;
  FactorPanel<T, kWidth, kGridThreads>(GridTeam<Slot>(reinterpret_cast<Slot*>(panel.scratch)),
                                       panel);
}

template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kThreads, 1) CroutPanelClusterKernel(const CroutPanel<T> panel) {
  using Slot = PanelSlot<T, kWidth>;
  __shared__ Slot slots[2];
  FactorPanel<T, kWidth, kThreads>(ClusterTeam<Slot>(slots), panel);
}

// Calls f(integral constant) for the width.
template <class F>
decltype(auto) DispatchWidth(int width, F&& f) {
  if (width == 8) return f(std::integral_constant<int, 8>{});
  if (width == 16) return f(std::integral_constant<int, 16>{});
  return f(std::integral_constant<int, 32>{});
}

int WidthIndex(int width) { return width == 8 ? 0 : width == 16 ? 1 : 2; }
int TypeIndex(DType dtype) { return dtype == DType::kFloat32 ? 0 : 1; }

constexpr int kMaxClusterBlocks = 16;
constexpr int kSmallClusterThreads = 256;
constexpr int kLargeClusterThreads = 512;

template <class T, int kWidth>
absl::Status AllowLargeClusters() {
  for (const void* kernel :
       {reinterpret_cast<const void*>(CroutPanelClusterKernel<T, kWidth, kSmallClusterThreads>),
        reinterpret_cast<const void*>(CroutPanelClusterKernel<T, kWidth, kLargeClusterThreads>)}) {
    CROUT_RETURN_IF_CUDA_ERROR(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  }
  return absl::OkStatus();
}

template <class T, int kWidth, int kThreads>
cudaError_t LaunchCluster(const CroutPanel<T>& panel, cudaStream_t stream) {
  unsigned blocks = 1;
  while (static_cast<int64_t>(blocks) * kThreads < panel.a.rows) blocks *= 2;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {blocks, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, CroutPanelClusterKernel<T, kWidth, kThreads>, panel);
}

template <class T, int kWidth>
cudaError_t LaunchGrid(const CroutPanel<T>& panel, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((panel.a.rows + kGridThreads - 1) / kGridThreads);
  CroutPanel<T> argument = panel;
  void* arguments[] = {&argument};
  return cudaLaunchCooperativeKernel(CroutPanelGridKernel<T, kWidth>, dim3(blocks),
                                     dim3(kGridThreads), arguments, 0, stream);
}

}  // namespace

absl::StatusOr<CroutPanelKernels> CroutPanelKernels::Create() {
  int device = 0;
  int multiprocessors = 0;
  int clusters = 0;
  CROUT_RETURN_IF_CUDA_ERROR(cudaGetDevice(&device));
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CROUT_RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device));
  CroutPanelKernels kernels;
  kernels.clusters_ = clusters != 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int width : {8, 16, 32}) {
      int64_t& rows = kernels.grid_rows_[TypeIndex(dtype)][WidthIndex(width)];
      CROUT_RETURN_IF_ERROR(DispatchDType(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return DispatchWidth(width, [&](auto w) -> absl::Status {
          int blocks = 0;
          CROUT_RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
              &blocks, CroutPanelGridKernel<T, w()>, kGridThreads, 0));
          rows = static_cast<int64_t>(blocks) * multiprocessors * kGridThreads;
          return clusters != 0 ? AllowLargeClusters<T, w()>() : absl::OkStatus();
        });
      }));
    }
  }
  return kernels;
}

int CroutPanelKernels::WidthFor(DType dtype, int64_t n, int wanted) const {
  int width = wanted;
  while (width > 8 && n > grid_rows_[TypeIndex(dtype)][WidthIndex(width)]) width /= 2;
  return width;
}

size_t CroutPanelKernels::ScratchBytes(DType dtype, int64_t n, int width) {
  const size_t slot = DispatchDType(dtype, [&](auto tag) {
    return DispatchWidth(
        width, [&](auto w) { return sizeof(PanelSlot<typename decltype(tag)::type, w()>); });
  });
  return 2 * static_cast<size_t>((n + kGridThreads - 1) / kGridThreads) * slot;
}

template <class T>
cudaError_t CroutPanelKernels::Launch(const CroutPanel<T>& panel, int width,
                                      cudaStream_t stream) const {
  const int64_t rows = panel.a.rows;
  return DispatchWidth(width, [&](auto w) {
    if (clusters_ && rows <= kMaxClusterBlocks * kSmallClusterThreads) {
      return LaunchCluster<T, w(), kSmallClusterThreads>(panel, stream);
    }
    if (clusters_ && rows <= kMaxClusterBlocks * kLargeClusterThreads) {
      return LaunchCluster<T, w(), kLargeClusterThreads>(panel, stream);
    }
    return LaunchGrid<T, w()>(panel, stream);
  });
}

template cudaError_t CroutPanelKernels::Launch(const CroutPanel<float>&, int, cudaStream_t) const;
template cudaError_t CroutPanelKernels::Launch(const CroutPanel<double>&, int, cudaStream_t) const;

}  // namespace crout
