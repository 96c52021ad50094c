// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/multifrontal/front_solve_kernels.cuh"
#include "kernels/cuda/multifrontal/light_front.cuh"
#include "kernels/cuda/multifrontal/many_children.cuh"

namespace crout::cuda {

template cudaError_t LaunchGather(const FrontSolve<float>&, int64_t, const int32_t*, const double*,
                                  const MatrixView<const float>&, cudaStream_t);
template cudaError_t LaunchScatter(const FrontSolve<float>&, int64_t, const int32_t*, const double*,
                                   const MatrixView<float>&, cudaStream_t);
template cudaError_t LaunchStartUp(const FrontSolve<float>&, const FrontSet&, bool, cudaStream_t);
template cudaError_t LaunchStartUpOfMany(const FrontSolve<float>&, const FrontSet&, bool,
                                         cudaStream_t);
template cudaError_t LaunchStepUp(const FrontSolve<float>&, const FrontSet&, int, cudaStream_t);
template cudaError_t LaunchStartDown(const FrontSolve<float>&, const FrontSet&, cudaStream_t);
template cudaError_t LaunchStepDown(const FrontSolve<float>&, const FrontSet&, int, cudaStream_t);
template cudaError_t LaunchLightUp(const FrontSolve<float>&, const FrontSet&, cudaStream_t);
template cudaError_t LaunchLightDown(const FrontSolve<float>&, const FrontSet&, cudaStream_t);

}  // namespace crout::cuda
