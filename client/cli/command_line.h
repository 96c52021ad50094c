// SPDX-License-Identifier: Apache-2.0

// Runs croutctl from its arguments to its exit code.
#ifndef CROUT_CLIENT_CLI_COMMAND_LINE_H_
#define CROUT_CLIENT_CLI_COMMAND_LINE_H_

#include <string>
#include <vector>

namespace crout::cli {

// Parses, runs and prints. An exception becomes an error with the code kFailed.
int RunCommandLine(int argc, const char* const* argv);

// Returns the word of `words` with the smallest edit distance to `word` (insertions, deletions,
// substitutions, transpositions of neighbours); empty if none is close.
std::string Nearest(const std::string& word, const std::vector<std::string>& words);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_COMMAND_LINE_H_
