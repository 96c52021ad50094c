// SPDX-License-Identifier: Apache-2.0

// Command lines of Open MPI.
#ifndef CROUT_RANK_OPEN_MPI_H_
#define CROUT_RANK_OPEN_MPI_H_

#include <optional>
#include <string>
#include <vector>

#include "crout/rank/v1/rank_service.pb.h"

namespace crout::rank {

// Replaces this process by Open MPI's mpirun, which starts `ranks` processes `program` on this
// machine that join the daemon at `address`. They end when mpirun ends. Returns only if mpirun
// cannot be executed; errno is then set.
void ExecuteMpirun(int ranks, const std::string& program, const std::string& address);

// mpirun starts the program `program`, which all machines have at the same path, as many times on
// each machine as `form` requires. It executes "program kRelayOption MACHINE PARAMETERS" to start
// its process orted on each machine, this one too. `network`: "" or the network that MPI uses.
// `folder`: for its files.
std::vector<std::string> MpirunCommand(const v1::Form& form, const std::string& program,
                                       const std::string& network, const std::string& folder);
inline constexpr char kRelayOption[] = "--relay";

// Returns the parameters in the arguments after kRelayOption; nothing if one is absent or invalid.
std::optional<v1::Launch> ReadRelayed(const std::vector<std::string>& arguments);
// Returns true if the parameters have only the characters that mpirun writes.
bool IsValid(const v1::Launch& launch);
// The command of orted for valid parameters. Nothing in it but their values comes from mpirun.
std::vector<std::string> OrtedCommand(const v1::Launch& launch, const std::string& network,
                                      const std::string& folder);
// Environment variables, "NAME=value", of orted and of its ranks, beside those of this machine.
std::vector<std::string> RankVariables(const std::string& folder);

}  // namespace crout::rank

#endif  // CROUT_RANK_OPEN_MPI_H_
