#include "kernels/host/openmp_environment.h"

#include <unistd.h>

#include <cstdlib>

namespace crout {

void UsePassiveOpenMpWaits(char** argv) {
  constexpr char kVariable[] = "OMP_WAIT_POLICY";
  // One thread, as the header demands.
  if (getenv(kVariable) != nullptr) return;          // NOLINT(concurrency-mt-unsafe)
  if (setenv(kVariable, "passive", 0) != 0) return;  // NOLINT(concurrency-mt-unsafe)
  // block_lu's tasks have priorities from 0 to 2, which the runtime ignores by default.
  setenv("OMP_MAX_TASK_PRIORITY", "2", 0);  // NOLINT(concurrency-mt-unsafe)
  // The runtime reads the environment when it is loaded, which is before main.
  execv("/proc/self/exe", argv);
}

}  // namespace crout
