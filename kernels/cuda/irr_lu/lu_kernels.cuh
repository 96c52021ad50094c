// SPDX-License-Identifier: Apache-2.0

// The kernels that factor whole members; each lu_*.cu instantiates them for one element type.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_LU_KERNELS_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_LU_KERNELS_CUH_

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/irr_lu/member_lu.cuh"
#include "kernels/cuda/irr_lu/warp_lu.cuh"

namespace crout::cuda {

// Lets the next kernel start when this kernel's last blocks have started, and ends only after the
// previous kernel. So launches for different members overlap, and work behind the last launch waits
// for all of them.
template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads, 512 / kThreads)
    MemberLuKernel(IrrLuBatch<T> batch, const int32_t* order) {
  using Lu = MemberLu<T, kThreads>;
  ReleaseDependentKernel();
  const int32_t i = order[blockIdx.x];
  const BatchMember member = batch.members[i];
  const MatrixView<T> a = {batch.data + member.offset, member.rows, member.cols, member.ld};
  Lu lu(a, batch.ipiv + member.first_diagonal, batch.least.From(member.first_diagonal),
        SharedByBlock<typename Lu::Shared>());
  const int info = lu.Factor();
  if (threadIdx.x == 0) batch.info[i] = info;
  AwaitPreviousKernel();
}

// If a block has fewer than MemberBlocking::kBlock columns, this kernel also updates the columns up
// to the end of a whole block, because later updates start there.
template <class T, int kThreads, bool kInRegisters = true>
__global__ void __launch_bounds__(kThreads, 512 / kThreads)
    Getf2Kernel(IrrLuBatch<T> batch, int begin, const int32_t* order) {
  using Lu = MemberLu<T, kThreads, kInRegisters>;
  constexpr int kBlock = MemberBlocking<T>::kBlock;
  const int32_t i = order[blockIdx.x];
  const BatchMember member = batch.members[i];
  if (begin == 0 && threadIdx.x == 0) batch.info[i] = 0;
  const int width = min(kBlock, member.diagonal() - begin);
  if (width <= 0) return;
  const MatrixView<T> a = {batch.data + member.offset, member.rows, member.cols, member.ld};
  Lu lu(a, batch.ipiv + member.first_diagonal, batch.least.From(member.first_diagonal),
        SharedByBlock<typename Lu::Shared>());
  const int singular = lu.FactorBlock(begin, width);
  const int end = min(begin + kBlock, member.cols);
  if (begin + width < end) lu.template UpdateColumns<kBlock>(begin, width, end);
  if (threadIdx.x == 0 && singular != 0 && batch.info[i] == 0) batch.info[i] = begin + singular;
}

template <class T>
__global__ void __launch_bounds__(kWarpsOfBlock* kWarp)
    WarpLuKernel(IrrLuBatch<T> batch, const int32_t* order, int count) {
  ReleaseDependentKernel();
  const int k =
      static_cast<int>(blockIdx.x) * kWarpsOfBlock + static_cast<int>(threadIdx.x) / kWarp;
  if (k < count) {
    const int32_t i = order[k];
    const BatchMember member = batch.members[i];
    const MatrixView<T> a = {batch.data + member.offset, member.rows, member.cols, member.ld};
    int64_t* const ipiv = batch.ipiv + member.first_diagonal;
    const MinPivots<T> least = batch.least.From(member.first_diagonal);
    if (member.cols <= 8) {
      FactorByWarp<8>(a, ipiv, batch.info + i, least);
    } else if (member.cols <= 16) {
      FactorByWarp<16>(a, ipiv, batch.info + i, least);
    } else {
      FactorByWarp<32>(a, ipiv, batch.info + i, least);
    }
  }
  AwaitPreviousKernel();
}

template <class T>
cudaError_t LaunchMemberLu(const IrrLuBatch<T>& batch, MemberTeam team, const int32_t* order,
                           int count, bool overlap, cudaStream_t stream) {
  const auto blocks = [&](auto kernel, unsigned threads) {
    return LaunchDependent(kernel, dim3(static_cast<unsigned>(count)), threads, 0, overlap, stream,
                           batch, order);
  };
  switch (team) {
    case MemberTeam::kBlock512:
      return blocks(MemberLuKernel<T, 512>, 512);
    case MemberTeam::kBlock256:
      return blocks(MemberLuKernel<T, 256>, 256);
    case MemberTeam::kBlock128:
      return blocks(MemberLuKernel<T, 128>, 128);
    case MemberTeam::kWarp:
      return LaunchDependent(WarpLuKernel<T>, dim3((count + kWarpsOfBlock - 1) / kWarpsOfBlock),
                             kWarpsOfBlock * kWarp, 0, overlap, stream, batch, order, count);
    case MemberTeam::kGrid:
      break;
  }
  return cudaErrorInvalidValue;
}

template <class T>
cudaError_t LaunchIrrGetf2(const IrrLuBatch<T>& batch, int begin, const IrrMembers& members,
                           cudaStream_t stream) {
  constexpr int kThreads = 512;
  if (members.count == 0) return cudaSuccess;
  return LaunchDependent(Getf2Kernel<T, kThreads>, dim3(static_cast<unsigned>(members.count)),
                         kThreads, 0, false, stream, batch, begin, members.order);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_LU_KERNELS_CUH_
