// SPDX-License-Identifier: Apache-2.0

// The processes of one formation of a group on this machine.
#ifndef CROUT_SERVER_GROUPS_RANK_PROCESSES_H_
#define CROUT_SERVER_GROUPS_RANK_PROCESSES_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/groups/rank_folder.h"

namespace crout {

struct RankStart {
  std::string program;  // path of crout-rank
  int ranks = 1;
  int threads = 1;        // cores of each rank
  int memory = -1;        // descriptor of the group's shared memory
  std::vector<int> gpus;  // ordinal of each rank's GPU; empty: the ranks use none
  std::string token;
};

// The process that starts the ranks (crout-rank --start, which becomes mpirun). Used by one thread,
// whose end also ends the processes.
class RankProcesses {
 public:
  // Starts the ranks, which join at the socket of `folder`. UNAVAILABLE if the system cannot start
  // the process.
  static absl::StatusOr<std::unique_ptr<RankProcesses>> Start(const RankFolder& folder,
                                                              const RankStart& start);
  // Kills the process and waits for its end. Its ranks then end too, but may outlive this call.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;  // It owns a process.
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Returns true if the process has ended.
  bool ended();
  // Returns true if the processes cannot be reached over the network. Call it after the ranks have
  // joined.
  bool HasOwnNetwork() const;

 private:
  explicit RankProcesses(pid_t pid) : pid_(pid) {}

  pid_t pid_;  // 0 after its end
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_RANK_PROCESSES_H_
