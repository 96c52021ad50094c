// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/openmp_environment.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>  // program_invocation_short_name
#include <cstdlib>

namespace crout::host {

void UsePassiveOpenMpWaits(char** argv) {
  constexpr char kWaits[] = "OMP_WAIT_POLICY";
  constexpr const char* kStacks[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE", "KMP_STACKSIZE"};
  // NOLINTBEGIN(concurrency-mt-unsafe): one thread, as the header demands.
  bool is_default = getenv(kWaits) != nullptr;
  for (const char* stack : kStacks) is_default = is_default && getenv(stack) == nullptr;
  if (is_default) {
    // execv() sets the process name to "exe", which hides the program in ps and top.
    prctl(PR_SET_NAME, program_invocation_short_name);
    return;
  }
  if (setenv(kWaits, "passive", 0) != 0) return;
  for (const char* stack : kStacks) unsetenv(stack);
  // block_lu uses task priorities 0 to 2, which the runtime ignores by default.
  setenv("OMP_MAX_TASK_PRIORITY", "2", 0);
  // NOLINTEND(concurrency-mt-unsafe)
  // The runtime reads the environment when it is loaded, before main().
  execv("/proc/self/exe", argv);
}

}  // namespace crout::host
