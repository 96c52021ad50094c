// SPDX-License-Identifier: Apache-2.0

#include "client/cli/help/help.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/exit_codes.h"

namespace crout::cli {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kIndent = 26;            // column of the descriptions
constexpr size_t kMaxChoicesLength = 24;  // longer lists of values move to the description

// Appends `text` to the last line of `help`, broken between words and indented by `indent`.
void AppendWrapped(absl::string_view text, size_t indent, std::string* help) {
  size_t column = help->size() - (help->rfind('\n') + 1);  // npos + 1 is 0
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (column > indent && column + 1 + word.size() > kWidth) {
      absl::StrAppend(help, "\n", std::string(indent, ' '));
      column = indent;
    } else if (column > indent) {
      help->push_back(' ');
      ++column;
    }
    absl::StrAppend(help, word);
    column += word.size();
  }
  help->push_back('\n');
}

// Appends a line with a description in the second column.
void AppendEntry(const std::string& name, const std::string& description, std::string* help) {
  const std::string start = absl::StrCat("  ", name);
  absl::StrAppend(help, start);
  if (start.size() + 2 > kIndent) {
    absl::StrAppend(help, "\n", std::string(kIndent, ' '));
  } else {
    help->append(kIndent - start.size(), ' ');
  }
  AppendWrapped(description, kIndent, help);
}

void AppendOptionHelp(const OptionEntry& option, std::string* help) {
  std::string name = absl::StrJoin(option.names, ", ");
  std::string description = absl::StrCat(option.description, Remarks(option));
  if (option.value.size() > kMaxChoicesLength && !option.choices.empty()) {
    absl::StrAppend(&name, " ", option.type == "TEXT" ? "NAME" : option.type);
    absl::StrAppend(&description, ". Values: ", absl::StrJoin(option.choices, ", "));
  } else if (!option.value.empty()) {
    absl::StrAppend(&name, " ", option.value);
  }
  AppendEntry(name, description, help);
}

void AppendArguments(const CommandEntry& command, std::string* help) {
  if (command.arguments.empty()) return;
  absl::StrAppend(help, "\nArguments:\n");
  for (const OptionEntry& argument : command.arguments) {
    AppendEntry(absl::AsciiStrToUpper(argument.names[0]),
                absl::StrCat(argument.description, Remarks(argument)), help);
  }
}

void AppendCommands(const std::vector<CommandEntry>& commands, std::string* help) {
  std::string section;
  for (const CommandEntry& command : commands) {
    if (command.section != section) absl::StrAppend(help, "\n", command.section, ":\n");
    section = command.section;
    AppendEntry(command.name, command.description, help);
  }
}

void AppendOptionSections(const CommandEntry& command, std::string* help) {
  std::string section;
  for (const OptionEntry& option : command.options) {
    if (option.section != section) absl::StrAppend(help, "\n", option.section, ":\n");
    section = option.section;
    AppendOptionHelp(option, help);
  }
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/,
                                     CLI::AppFormatMode /*mode*/) const {
  const CommandEntry command = EntryOf(*app);
  const bool is_program = command.name.empty();
  std::string help = is_program ? "Usage: croutctl [OPTIONS] COMMAND [ARGUMENTS]"
                                : absl::StrCat("Usage: croutctl ", command.name, " [OPTIONS]");
  for (const OptionEntry& argument : command.arguments) {
    const std::string name =
        absl::StrCat(absl::AsciiStrToUpper(argument.names[0]), argument.repeated ? "..." : "");
    absl::StrAppend(&help, " ", argument.required ? name : absl::StrCat("[", name, "]"));
  }
  absl::StrAppend(&help, "\n\n");
  AppendWrapped(absl::StrCat(command.description, "."), 0, &help);
  if (is_program) AppendCommands(CommandsOf(*app), &help);
  AppendArguments(command, &help);
  AppendOptionSections(command, &help);
  absl::StrAppend(&help, "\nExamples:\n");
  for (const std::string& example : command.examples) absl::StrAppend(&help, "  ", example, "\n");
  if (is_program) {
    absl::StrAppend(&help, "\n`croutctl COMMAND --help` describes a command.\n\n", ExitCodesHelp(),
                    "\n");
  } else {
    absl::StrAppend(&help, "\n`croutctl --help` lists the global options and the exit codes.\n");
  }
  return help;
}

}  // namespace crout::cli
