// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/exchange_rows.cuh"
#include "kernels/cuda/irr_lu/irr_blas.h"

namespace crout::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kColumns = 64;  // per block
constexpr int kTraced = kThreads / kWarp;

struct LaswpShared {
  Moves moves[kTraced][kWarp];
};

// One block per member and kColumns columns; a block handles several such groups if the grid is too
// small. Each warp traces the interchanges of 32 rows. Then all warps apply these interchanges to
// their columns, one chunk after the other.
template <bool kBackward, class T>
__global__ void __launch_bounds__(kThreads) LaswpKernel(IrrLaswp<T> laswp, const int32_t* order) {
  LaswpShared& shared = SharedByBlock<LaswpShared>();
  const int32_t member = order[blockIdx.x];
  const BatchMember& of_pivots = laswp.pivots[member];
  const MatrixView<T> a = laswp.a.Local(member, laswp.a.members[member].rows, laswp.n);
  const int end = min(laswp.end, of_pivots.diagonal());
  if (end <= laswp.begin || blockIdx.y * int64_t{kColumns} >= a.cols) return;
  const int64_t* const ipiv = laswp.ipiv + of_pivots.first_diagonal;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int chunks = (end - laswp.begin + kWarp - 1) / kWarp;
  for (int done = 0; done < chunks; done += kTraced) {
    const int traced = min(kTraced, chunks - done);
    if (warp < traced) {
      const int chunk = kBackward ? chunks - 1 - done - warp : done + warp;
      shared.moves[warp][lane] = Trace(ipiv, 0, laswp.begin + chunk * kWarp, end);
    }
    __syncthreads();
    for (int64_t first = blockIdx.y * int64_t{kColumns}; first < a.cols;
         first += gridDim.y * int64_t{kColumns}) {
      const auto count = static_cast<int>(min(int64_t{kColumns}, a.cols - first));
      for (int k = 0; k < traced; ++k) {
        ExchangeRows<kBackward>(a, static_cast<int>(first), count, shared.moves[k][lane]);
        __syncwarp();
      }
    }
    __syncthreads();
  }
}

}  // namespace

template <class T>
cudaError_t LaunchIrrLaswp(const IrrLaswp<T>& laswp, const IrrMembers& members,
                           cudaStream_t stream) {
  if (laswp.begin >= laswp.end || laswp.n <= 0 || members.count == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>(members.count), BlocksOf(laswp.n, kColumns));
  return LaunchDependent(laswp.backward ? LaswpKernel<true, T> : LaswpKernel<false, T>, grid,
                         kThreads, 0, false, stream, laswp, members.order);
}

template cudaError_t LaunchIrrLaswp(const IrrLaswp<float>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrLaswp(const IrrLaswp<double>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrLaswp(const IrrLaswp<Complex<float>>&, const IrrMembers&,
                                    cudaStream_t);
template cudaError_t LaunchIrrLaswp(const IrrLaswp<Complex<double>>&, const IrrMembers&,
                                    cudaStream_t);

}  // namespace crout::cuda
