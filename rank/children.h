// SPDX-License-Identifier: Apache-2.0

// The processes of a formation on this machine.
#ifndef CROUT_RANK_CHILDREN_H_
#define CROUT_RANK_CHILDREN_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace crout::rank {

// Starts processes and kills them with all their descendants. This process becomes the parent of
// descendants whose parents end, so none is left. One object for a process, used on one thread,
// whose end also ends the processes.
class Children {
 public:
  Children();

  // Starts a program that is searched in PATH. Its output goes to the file `log`. The environment
  // is this process's, with `variables` ("NAME=value") added and without the variables of resource
  // managers, which would change what Open MPI does. Returns false, with errno, if the system
  // cannot start a process; a program that cannot be executed writes to `log` and ends.
  bool Start(const std::vector<std::string>& command, const std::vector<std::string>& variables,
             const std::string& log);
  // Returns true if one of the started processes has ended since the last KillAll().
  bool AnyEnded();
  // Kills all processes and waits for their end, for kEndSeconds at most.
  void KillAll();

 private:
  static constexpr int kEndSeconds = 10;

  std::vector<pid_t> started_;
  bool any_ended_ = false;
};

}  // namespace crout::rank

#endif  // CROUT_RANK_CHILDREN_H_
