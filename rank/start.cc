// SPDX-License-Identifier: Apache-2.0

#include "rank/start.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "rank/network.h"

namespace crout::rank {

void Start(int ranks, const std::string& program, const std::string& address) {
  // Folder of all files that MPI makes. The daemon removes it, because killed ranks do not.
  const char* const variable = std::getenv("TMPDIR");
  const std::string folder = variable != nullptr ? variable : "/tmp";
  const std::vector<std::string> arguments = {
      CROUT_MPIRUN, "-n", std::to_string(ranks),
      // The system places the ranks, which may outnumber the cores and then yield them.
      "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
      // One machine: no remote start, no network but loopback, messages through shared memory.
      "--mca", "plm", "isolated", "--mca", "oob_tcp_if_include", "lo",  //
      "--mca", "pml", "ob1", "--mca", "btl", "self,vader",
      // Containers often forbid process_vm_readv.
      "--mca", "btl_vader_single_copy_mechanism", "none",  //
      "--mca", "btl_vader_backing_directory", folder, "--mca", "orte_tmpdir_base", folder, program,
      "--join=" + address};
  std::vector<char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  // mpirun accepts connections on all interfaces, from any host and without authentication.
  // RankProcesses::HasOwnNetwork() finds out whether this succeeded.
  LeaveNetwork();
  // mpirun refuses to run as root, as in most containers, without these.
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  execvp(CROUT_MPIRUN, pointers.data());
}

}  // namespace crout::rank
