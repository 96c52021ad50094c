// SPDX-License-Identifier: Apache-2.0

// The command line of crout-rank.
#ifndef CROUT_RANK_COMMAND_LINE_H_
#define CROUT_RANK_COMMAND_LINE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crout::rank {

struct CommandLine {
  std::string join;         // address of the daemon
  std::string group;        // agent: name of the group
  int ranks = 1;            // agent: ranks of this machine
  std::string network;      // agent: network for MPI, such as 10.0.0.0/24; "": all
  bool tls = false;         // the options below are those of croutctl; paths are absolute
  std::string ca;           // roots of the daemon's certificate; "": those of the system
  std::string certificate;  // the client certificate; "": none
  std::string key;
  std::string token_file;  // "": no token
  int start = 0;           // number of ranks to start on the daemon's machine; 0: none
};

// Returns nothing if an option is unknown or malformed, or --join is absent.
std::optional<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// Returns true, and the number, if `text` is a whole number of at least `least`.
bool ParseCount(std::string_view text, int least, int* count);

// Returns the arguments with which a rank on the machine of the agent `line` joins the daemon.
std::vector<std::string> RankArguments(const CommandLine& line);

}  // namespace crout::rank

#endif  // CROUT_RANK_COMMAND_LINE_H_
