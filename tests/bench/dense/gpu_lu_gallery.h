// SPDX-License-Identifier: Apache-2.0

// Compares the accuracy of crout_lu and getrf over the test gallery.
#ifndef CROUT_TESTS_BENCH_DENSE_GPU_LU_GALLERY_H_
#define CROUT_TESTS_BENCH_DENSE_GPU_LU_GALLERY_H_

#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/device/cuda_context.h"
#include "nlohmann/json.hpp"

namespace crout {

// Returns a record for each kind, type and order, with the factor ratio, pivot growth and info of
// both methods. Exits on an error.
nlohmann::ordered_json BenchLuGallery(cuda::Context& context, const cuda::LuPanelKernels& kernels);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_DENSE_GPU_LU_GALLERY_H_
