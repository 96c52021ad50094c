// The commands and options of croutctl as plain data: what the manual pages and the completion of
// shells are made of, read from the parser itself, which prints the help.
#ifndef CROUT_CLIENT_CLI_COMMAND_TABLE_H_
#define CROUT_CLIENT_CLI_COMMAND_TABLE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace crout::cli {

struct OptionEntry {
  std::vector<std::string> names;    // "-o", "--output"; the name alone of an argument
  std::string value;                 // "FILE|-", "INT", "f32|f64"; empty: takes none
  std::vector<std::string> choices;  // where the value is one of these
  bool file = false;                 // the value is a file
  bool required = false;
  std::string description;
  std::string default_text;  // empty: none, or said in the description
  std::string environment;   // a variable that sets it too
};

struct CommandEntry {
  std::string name;  // empty: croutctl itself
  std::string description;
  std::vector<OptionEntry> arguments;
  std::vector<OptionEntry> options;
};

CommandEntry EntryOf(const CLI::App& app);
// Its commands, in the order of the help.
std::vector<CommandEntry> CommandsOf(const CLI::App& app);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_COMMAND_TABLE_H_
