// SPDX-License-Identifier: Apache-2.0

#include "client/cli/command_line.h"

#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/commands.h"
#include "client/cli/exit_codes.h"
#include "client/cli/help/help.h"
#include "client/cli/help/synonyms.h"
#include "client/cli/report/text.h"
#include "crout_version.h"

namespace crout::cli {
namespace {

// Finds the option or argument with this name of `command` or of `app`; nullptr if there is none.
const CLI::Option* FindOption(const CLI::App& app, const CLI::App& command,
                              const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option != nullptr ? option : app.get_option_no_throw(name);
}

// Whether one of `words` gives the long option `name`.
bool IsGiven(const std::vector<std::string>& words, const std::string& name) {
  return absl::c_any_of(words, [&](const std::string& word) {
    return word == name || absl::StartsWith(word, name + "=");
  });
}

// Returns the name of an option in messages: the environment variable if that sets the option, and
// for an argument its name in the help, such as MATRIX.
std::string DisplayName(const CLI::Option& option, const std::vector<std::string>& words) {
  if (option.get_positional()) return absl::AsciiStrToUpper(option.get_name(true));
  const bool by_variable = !option.get_envname().empty() && !IsGiven(words, option.get_name());
  return by_variable ? option.get_envname() : option.get_name();
}

// Describes why a value of `option` cannot be parsed.
std::string ExpectedValue(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "neither true nor false";
  if (absl::StrContains(option.get_type_name(), "INT")) return "not an integer";
  if (absl::StrContains(option.get_type_name(), "FLOAT")) return "not a number";
  return "not a valid value";
}

// Rewords `rest`, the part of a message of the parser that follows the name of `option`.
std::string Reworded(const CLI::App& app, const CLI::App& command, const CLI::Option& option,
                     absl::string_view rest, const std::vector<std::string>& words) {
  const std::string name = DisplayName(option, words);
  const auto other = [&](absl::string_view text) {
    const CLI::Option* const found = FindOption(app, command, std::string(text));
    return found == nullptr ? std::string(text) : DisplayName(*found, words);
  };
  if (rest == " is required") return absl::StrCat(name, " is missing");
  if (absl::ConsumePrefix(&rest, " excludes ")) {
    return absl::StrCat(name, " cannot be given with ", other(rest));
  }
  if (absl::ConsumePrefix(&rest, " requires ")) return absl::StrCat(name, " needs ", other(rest));
  if (absl::ConsumePrefix(&rest, " = ")) {
    return absl::StrCat(name, ": '", rest, "' is ", ExpectedValue(option));
  }
  if (absl::StrContains(rest, " required ") && absl::EndsWith(rest, " missing")) {
    return absl::StrCat(name, " has too few values: give ", option.get_type_name());
  }
  return absl::StrCat(name, rest);
}

// Refers to the help of a command or of croutctl.
std::string HelpOf(const CLI::App& command) {
  const std::string name = command.get_parent() == nullptr ? "" : command.get_name() + " ";
  return absl::StrCat(" (`croutctl ", name, "--help`)");
}

// The error of an option or argument of `command` that `app` does not have.
std::string ExtraError(const CLI::App& app, const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* owner : {&command, &app}) {
    for (const CLI::Option* option : owner->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
  }
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  for (const std::string& word : extras) {
    if (!absl::StartsWith(word, "-") || word == "-") continue;
    return absl::StrCat("`", command.get_name(), "` has no option '",
                        Printable(word.substr(0, word.find('='))), "'", OptionHint(word, names),
                        HelpOf(command));
  }
  return absl::StrCat("`", command.get_name(), "` does not take '",
                      extras.empty() ? "" : Printable(extras.front()), "'", HelpOf(command));
}

// The error of a command line with `command` that the parser refused.
std::string CommandError(const CLI::App& app, const CLI::App& command, const CLI::ParseError& error,
                         const std::vector<std::string>& words) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    return ExtraError(app, command);
  }
  absl::string_view rest = error.what();
  absl::ConsumePrefix(&rest, "Could not convert: ");
  const std::string name(rest.substr(0, rest.find_first_of(": ")));
  const CLI::Option* const option = FindOption(app, command, name);
  if (option == nullptr) {
    return absl::StrCat(error.what(), HelpOf(command));
  }
  rest.remove_prefix(name.size());
  const bool of_command = command.get_option_no_throw(name) == option;
  return absl::StrCat(Reworded(app, command, *option, rest, words),
                      HelpOf(of_command ? command : app));
}

// Suggests a command for an unknown one.
std::string HintOfCommand(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return CommandHint(word, names);
}

// Suggests an option of croutctl itself for an unknown one before the command.
std::string HintOfOption(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return OptionHint(word, names);
}

// Whether errors are printed as JSON. The parser may have stopped before the option.
bool AsksForJson(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--json" || words[i] == "--show=json") return true;
    if (words[i] == "--show" && i + 1 < words.size() && words[i + 1] == "json") return true;
  }
  return false;
}

// The error of `words`, which `app` could not parse.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error,
                       const std::vector<std::string>& words) {
  if (!app.get_subcommands().empty()) {
    return CommandError(app, *app.get_subcommands().front(), error, words);
  }
  for (const std::string& word : app.remaining()) {
    if (absl::StartsWith(word, "-")) {
      return absl::StrCat("there is no option '", Printable(word), "'", HintOfOption(app, word),
                          " (`croutctl --help`)");
    }
    return absl::StrCat("there is no command '", Printable(word), "'", HintOfCommand(app, word),
                        " (`croutctl --help` lists them)");
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    return "the command is missing (`croutctl --help` lists the commands)";
  }
  return CommandError(app, app, error, words);
}

// Finds an option without a value, such as `--server= list` with an unset variable. The parser
// would use the next word as the value.
std::string WithoutValue(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (absl::StartsWith(word, "--") && absl::EndsWith(word, "=")) return word;
  }
  return "";
}

// Puts the commands without a group under this heading of the help.
void EndGroup(CLI::App* app, const std::string& heading) {
  for (CLI::App* command : app->get_subcommands({})) {
    if (command->get_group() == "Subcommands") command->group(heading);
  }
}

// The arguments of help and man are names of commands, which exist only now.
void CompleteCommandNames(CLI::App* app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app->get_subcommands({})) names.push_back(command->get_name());
  const CLI::Validator is_command(
      [names](const std::string& text) {
        if (absl::c_linear_search(names, text)) return std::string();
        return absl::StrCat("there is no command '", text, "'", CommandHint(text, names));
      },
      absl::StrCat("{", absl::StrJoin(names, ","), "}"));
  for (const char* const command : {"help", "man"}) {
    app->get_subcommand(command)->get_option("command")->check(is_command);
  }
}

// The parser adds -h before all other options.
void MoveHelpToEnd(CLI::App* command) {
  BeginSection(command, "Other");
  command->set_help_flag("-h,--help", "Print this help and exit");
}

int Run(int argc, const char* const* argv) {
  CLI::App app("Factor matrices on a Crout server and solve linear systems with the factors",
               "croutctl");
  app.require_subcommand(1);
  Session session(&app);
  AddCommands(&app, &session);
  app.set_version_flag("--version", "croutctl " CROUT_VERSION " (" CROUT_COMMIT ")",
                       "Print the version and exit");
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto refuse = [&](const std::string& message) {
    PrintError(AsksForJson(words), "USAGE", message, kBadUsage);
    return kBadUsage;
  };
  if (const std::string word = WithoutValue(words); !word.empty()) {
    return refuse(absl::StrCat(Printable(word), " has no value. Give a value or omit the option"));
  }
  // The parser reads the environment before it prints help.
  if (absl::c_any_of(words, [](const std::string& word) {
        return word == "-h" || word == "--help" || word == "--version";
      })) {
    session.IgnoreConnection();
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return refuse(UsageError(app, error, words));
  }
  return session.Run();
}

}  // namespace

void AddCommands(CLI::App* app, Session* session) {
  app->formatter(std::make_shared<HelpFormatter>());  // commands inherit it when they are added
  AddFactorCommands(app, session);
  AddSolveCommands(app, session);
  AddBatchCommands(app, session);
  AddSchurCommand(app, session);
  AddRrefCommand(app, session);
  AddSeriesCommand(app, session);
  EndGroup(app, "Factor and solve");
  AddDownloadCommand(app, session);
  AddCacheCommands(app, session);
  EndGroup(app, "Cached factors");
  AddVerifyCommand(app, session);
  AddAnalyzeCommand(app, session);
  EndGroup(app, "Without a server");
  AddServerCommands(app, session);
  AddTopCommand(app, session);
  AddBenchCommand(app, session);
  EndGroup(app, "Server");
  AddManualCommands(app, session);
  EndGroup(app, "croutctl itself");
  CompleteCommandNames(app);
  MoveHelpToEnd(app);
  for (CLI::App* command : app->get_subcommands({})) MoveHelpToEnd(command);
}

int RunCommandLine(int argc, const char* const* argv) {
  try {
    return Run(argc, argv);
  } catch (const std::bad_alloc&) {
    PrintError(false, "OUT_OF_MEMORY", "out of memory", kFailed);
  } catch (const std::exception& error) {
    PrintError(false, "INTERNAL", error.what(), kFailed);
  }
  return kFailed;
}

}  // namespace crout::cli
