// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/lu_panel.cuh"

namespace crout::cuda {

template LuPanelHeights QueryLuPanelHeights<double>(const DeviceLimits&);
template cudaError_t LaunchLuPanelCluster(const LuPanel<double>&, const LuPanelHeights&,
                                          cudaStream_t);

}  // namespace crout::cuda
