// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/irr_probe.h"

#include <cassert>

#include "kernels/cuda/irr_lu/probe_kernels.h"

namespace crout::cuda {

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

}  // namespace crout::cuda
