// SPDX-License-Identifier: Apache-2.0

// OpenMP settings that only the environment of the process can set: how threads wait and how large
// their stacks are.
#ifndef CROUT_KERNELS_HOST_DEVICE_OPENMP_ENVIRONMENT_H_
#define CROUT_KERNELS_HOST_DEVICE_OPENMP_ENVIRONMENT_H_

namespace crout::host {

// If needed, sets the OpenMP environment and restarts the program in the same process with the same
// arguments. `argv` is main()'s. Does nothing if OMP_WAIT_POLICY is set and no stack size is.
// Returns normally if nothing is to be done or the system refuses. The restarted process gets its
// original name back.
//
// - OMP_WAIT_POLICY defaults to "passive". If other work runs, threads that spin while they wait
//   take cores from the threads of their team. A factorization of order 2048 on four busy cores
//   took 5 s instead of 0.4 s.
// - OMP_MAX_TASK_PRIORITY defaults to 2, which enables task priorities.
// - OMP_STACKSIZE, GOMP_STACKSIZE and KMP_STACKSIZE are removed. A stack smaller than the
//   libraries' thread-local memory (60 KiB and more) ends the process when the team starts.
//
// Call it first in main(), before any thread exists.
void UsePassiveOpenMpWaits(char** argv);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_OPENMP_ENVIRONMENT_H_
