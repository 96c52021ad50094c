// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/solve_kernels.h"

#include <limits>

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/member_solve.cuh"
#include "kernels/cuda/irr_lu/warp_solve.cuh"

namespace crout::cuda {
namespace {

template <class T>
struct Solve {
  MatrixView<const T> lu;
  MatrixView<T> b;
  const int64_t* ipiv;
  bool singular;
};

template <class T>
__device__ Solve<T> SolveOf(const IrrSolveBatch<T>& batch, int32_t i) {
  const BatchMember a = batch.lu_members[i];
  const BatchMember b = batch.b_members[i];
  return {{batch.lu + a.offset, a.rows, a.cols, a.ld},
          {batch.b + b.offset, b.rows, b.cols, b.ld},
          batch.ipiv + a.first_diagonal,
          batch.info[i] > 0};
}

// Called by `threads` threads; `thread` is the caller's index.
template <class T>
__device__ void FillWithNan(const MatrixView<T>& b, unsigned thread, unsigned threads) {
  for (int64_t j = 0; j < b.cols; ++j) {
    for (int64_t i = thread; i < b.rows; i += threads) {
      b(i, j) = T{std::numeric_limits<RealPart<T>>::quiet_NaN()};
    }
  }
}

// Overlaps with the previous and next kernels in the same way as MemberLuKernel.
template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads, 512 / kThreads)
    MemberSolveKernel(IrrSolveBatch<T> batch, Op op, const int32_t* order) {
  ReleaseDependentKernel();
  const Solve<T> solve = SolveOf(batch, order[blockIdx.x]);
  if (solve.singular) {
    FillWithNan(solve.b, threadIdx.x, kThreads);
  } else {
    MemberSolve<T>(solve.lu, solve.ipiv, op, SharedByBlock<MemberSolveShared<T>>()).Solve(solve.b);
  }
  AwaitPreviousKernel();
}

template <class T>
__global__ void __launch_bounds__(kWarpsOfBlock* kWarp)
    WarpSolveKernel(IrrSolveBatch<T> batch, Op op, const int32_t* order, int count) {
  ReleaseDependentKernel();
  const int k =
      static_cast<int>(blockIdx.x) * kWarpsOfBlock + static_cast<int>(threadIdx.x) / kWarp;
  if (k < count) {
    const Solve<T> solve = SolveOf(batch, order[k]);
    if (solve.b.cols == 0) {
      // Nothing to do; A may be non-square.
    } else if (solve.singular) {
      FillWithNan(solve.b, threadIdx.x % kWarp, kWarp);
    } else if (solve.lu.rows <= 8) {
      SolveByWarp<8>(solve.lu, solve.ipiv, op, solve.b);
    } else if (solve.lu.rows <= 16) {
      SolveByWarp<16>(solve.lu, solve.ipiv, op, solve.b);
    } else {
      SolveByWarp<32>(solve.lu, solve.ipiv, op, solve.b);
    }
  }
  AwaitPreviousKernel();
}

constexpr int kFillThreads = 256;

template <class T>
__global__ void __launch_bounds__(kFillThreads)
    FillSingularKernel(IrrSolveBatch<T> batch, const int32_t* order) {
  const Solve<T> solve = SolveOf(batch, order[blockIdx.x]);
  if (solve.singular) FillWithNan(solve.b, threadIdx.x, kFillThreads);
}

}  // namespace

template <class T>
cudaError_t LaunchMemberSolve(const IrrSolveBatch<T>& batch, Op op, MemberTeam team,
                              const int32_t* order, int count, bool overlap, cudaStream_t stream) {
  const auto blocks = [&](auto kernel, unsigned threads) {
    return LaunchDependent(kernel, dim3(static_cast<unsigned>(count)), threads, 0, overlap, stream,
                           batch, op, order);
  };
  switch (team) {
    case MemberTeam::kBlock512:
      return blocks(MemberSolveKernel<T, 512>, 512);
    case MemberTeam::kBlock256:
      return blocks(MemberSolveKernel<T, 256>, 256);
    case MemberTeam::kBlock128:
      return blocks(MemberSolveKernel<T, 128>, 128);
    case MemberTeam::kWarp:
      return LaunchDependent(WarpSolveKernel<T>, dim3((count + kWarpsOfBlock - 1) / kWarpsOfBlock),
                             kWarpsOfBlock * kWarp, 0, overlap, stream, batch, op, order, count);
    case MemberTeam::kGrid:
      break;
  }
  return cudaErrorInvalidValue;
}

template <class T>
cudaError_t LaunchFillSingular(const IrrSolveBatch<T>& batch, const IrrMembers& members,
                               cudaStream_t stream) {
  if (members.count == 0) return cudaSuccess;
  return LaunchDependent(FillSingularKernel<T>, dim3(static_cast<unsigned>(members.count)),
                         kFillThreads, 0, false, stream, batch, members.order);
}

template cudaError_t LaunchMemberSolve(const IrrSolveBatch<float>&, Op, MemberTeam, const int32_t*,
                                       int, bool, cudaStream_t);
template cudaError_t LaunchMemberSolve(const IrrSolveBatch<double>&, Op, MemberTeam, const int32_t*,
                                       int, bool, cudaStream_t);
template cudaError_t LaunchMemberSolve(const IrrSolveBatch<Complex<float>>&, Op, MemberTeam,
                                       const int32_t*, int, bool, cudaStream_t);
template cudaError_t LaunchMemberSolve(const IrrSolveBatch<Complex<double>>&, Op, MemberTeam,
                                       const int32_t*, int, bool, cudaStream_t);

template cudaError_t LaunchFillSingular(const IrrSolveBatch<float>&, const IrrMembers&,
                                        cudaStream_t);
template cudaError_t LaunchFillSingular(const IrrSolveBatch<double>&, const IrrMembers&,
                                        cudaStream_t);
template cudaError_t LaunchFillSingular(const IrrSolveBatch<Complex<float>>&, const IrrMembers&,
                                        cudaStream_t);
template cudaError_t LaunchFillSingular(const IrrSolveBatch<Complex<double>>&, const IrrMembers&,
                                        cudaStream_t);

}  // namespace crout::cuda
