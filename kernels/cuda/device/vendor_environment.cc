// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/vendor_environment.h"

#include <cstdlib>

namespace crout::cuda {

void ClearPrecisionVariables() {
  for (const char* name : kPrecisionVariables) {
    // The caller guarantees that no other thread accesses the environment (see the header).
    if (getenv(name) != nullptr) unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  }
}

}  // namespace crout::cuda
