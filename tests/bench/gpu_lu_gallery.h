// The accuracy of crout_lu beside getrf's on the gallery of the tests.
#ifndef CROUT_TESTS_BENCH_GPU_LU_GALLERY_H_
#define CROUT_TESTS_BENCH_GPU_LU_GALLERY_H_

#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/lu_panel.h"
#include "nlohmann/json.hpp"

namespace crout {

// A record for every kind, type and order: factor ratio, pivot growth and info of either.
nlohmann::ordered_json BenchLuGallery(CudaContext& context, const LuPanelKernels& kernels);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_GPU_LU_GALLERY_H_
