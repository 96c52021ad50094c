// SPDX-License-Identifier: Apache-2.0

// The agent of a machine, which runs the machine's ranks of a group.
#ifndef CROUT_RANK_AGENT_H_
#define CROUT_RANK_AGENT_H_

#include <string>
#include <vector>

#include "rank/command_line.h"

namespace crout::rank {

// Offers ranks to the daemon until this process is killed. Starts and kills them when the daemon
// requests it, and kills them when the daemon ends or cannot be reached. Connects again then.
// Returns an exit code when the daemon refuses this agent for good.
int RunAgent(const CommandLine& line, const std::string& program);

// Sends `arguments` to the agent that started mpirun. Returns an exit code.
int Relay(const std::vector<std::string>& arguments);

}  // namespace crout::rank

#endif  // CROUT_RANK_AGENT_H_
