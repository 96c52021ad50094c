// How the OpenMP runtime waits and how large its threads' stacks are, which it lets only the
// environment of the process decide.
#ifndef CROUT_KERNELS_HOST_DEVICE_OPENMP_ENVIRONMENT_H_
#define CROUT_KERNELS_HOST_DEVICE_OPENMP_ENVIRONMENT_H_

namespace crout::host {

// Unless OMP_WAIT_POLICY is set, sets it to "passive" and starts the program anew in the same
// process, with the same arguments (`argv` as main has it), where it takes the name that it was
// called by. Threads that wait for their team by
// spinning take the cores from those they wait for as soon as anything else runs: a factorization
// of order 2048 on four busy cores took 5 s instead of 0.4 s. It lets tasks have priorities as
// well (OMP_MAX_TASK_PRIORITY). And it removes OMP_STACKSIZE and its like: a stack that is smaller
// than the libraries' thread-local memory (60 KiB and more) ends the process when the team starts.
// Call it first in main, before any thread exists. Returns where nothing is to be done or the
// system refuses.
void UsePassiveOpenMpWaits(char** argv);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_OPENMP_ENVIRONMENT_H_
