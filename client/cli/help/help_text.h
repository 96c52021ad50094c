// SPDX-License-Identifier: Apache-2.0

// Formats the help of croutctl and of its commands.
#ifndef CROUT_CLIENT_CLI_HELP_HELP_TEXT_H_
#define CROUT_CLIENT_CLI_HELP_HELP_TEXT_H_

#include <CLI/CLI.hpp>
#include <string>

namespace crout::cli {

// Synopsis, description, options by section and examples. The program's help also lists the
// commands and the exit codes. Lines have at most 80 characters, except examples and long words.
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_HELP_HELP_TEXT_H_
