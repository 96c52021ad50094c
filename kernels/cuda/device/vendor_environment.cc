#include "kernels/cuda/device/vendor_environment.h"

#include <cstdlib>

namespace crout::cuda {

void ClearPrecisionVariables() {
  for (const char* name : kPrecisionVariables) {
    // No other thread runs yet: the header says when this is called.
    if (getenv(name) != nullptr) unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  }
}

}  // namespace crout::cuda
