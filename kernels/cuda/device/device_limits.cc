// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/device_limits.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr int kPortableCluster = 8;  // supported by every GPU with clusters, if resources suffice
constexpr int kLargestCluster = 16;

absl::StatusOr<int> Attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  CROUT_RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

}  // namespace

absl::StatusOr<DeviceLimits> DeviceLimits::ForCurrentDevice(const CudaLimits& most) {
  int device = 0;
  CROUT_RETURN_IF_CUDA_ERROR(cudaGetDevice(&device));
  CROUT_ASSIGN_OR_RETURN(const int multiprocessors,
                         Attribute(cudaDevAttrMultiProcessorCount, device));
  CROUT_ASSIGN_OR_RETURN(const int shared,
                         Attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  CROUT_ASSIGN_OR_RETURN(const int clusters, Attribute(cudaDevAttrClusterLaunch, device));
  CROUT_ASSIGN_OR_RETURN(const int major, Attribute(cudaDevAttrComputeCapabilityMajor, device));
  DeviceLimits limits;
  limits.multiprocessors = std::min(multiprocessors, most.multiprocessors);
  limits.shared_bytes = std::min(static_cast<size_t>(shared), most.shared_bytes);
  limits.cluster_blocks = clusters != 0 ? std::min(kLargestCluster, most.cluster_blocks) : 0;
  limits.dependent_launch = major >= 9 && most.cluster_blocks > 0;  // both since Hopper
  return limits;
}

size_t DeviceLimits::DynamicBytes(size_t static_bytes) const {
  constexpr size_t kAlignment = 256;  // between static and dynamic memory
  return shared_bytes - std::min(shared_bytes, static_bytes + kAlignment);
}

int DeviceLimits::LargestCluster(const void* kernel, int threads, int most) const {
  for (int blocks = most; blocks > 1; blocks /= 2) {
    if (blocks > cluster_blocks) continue;
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.attrs = &cluster;
    config.numAttrs = 1;
    int fitting = 0;
    if ((blocks <= kPortableCluster ||
         cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) ==
             cudaSuccess) &&
        cudaOccupancyMaxActiveClusters(&fitting, kernel, &config) == cudaSuccess && fitting > 0) {
      return blocks;
    }
    (void)cudaGetLastError();  // clear the error: there is no cluster of this size here
  }
  return 0;
}

}  // namespace crout::cuda
