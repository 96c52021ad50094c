// croutctl from its arguments to its exit code.
#ifndef CROUT_CLIENT_CLI_COMMAND_LINE_H_
#define CROUT_CLIENT_CLI_COMMAND_LINE_H_

#include <string>
#include <vector>

namespace crout::cli {

// Parses, runs, prints. An exception's text is an error of code kFailed.
int RunCommandLine(int argc, const char* const* argv);

// The word of `words` that differs from `word` by the fewest letters that are missing, added,
// replaced or swapped with their neighbour; empty where none is near.
std::string Nearest(const std::string& word, const std::vector<std::string>& words);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_COMMAND_LINE_H_
