// SPDX-License-Identifier: Apache-2.0

#include "client/cli/command_line.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/cli/commands.h"
#include "client/cli/exit_codes.h"
#include "client/cli/help_text.h"
#include "client/cli/text.h"
#include "crout_version.h"

namespace crout::cli {
namespace {

// Optimal string alignment distance (Damerau's with at most one transposition of a pair).
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({replace, d[i - 1][j] + 1, d[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string NearestHint(const std::string& nearest) {
  return nearest.empty() ? "" : absl::StrCat("; the nearest is ", nearest);
}

// The option of `command` nearest to the first option among `words`, which were not parsed.
std::string NearestOption(const CLI::App& command, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const std::string& word : words) {
    if (absl::StartsWith(word, "--")) return Nearest(word.substr(0, word.find('=')), names);
  }
  return "";
}

// Commands similar to `word`: those that contain it, as "factor-batch" contains "batch"; otherwise
// the nearest one.
std::string LikelyCommands(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names, longer;
  for (const CLI::App* command : app.get_subcommands({})) {
    names.push_back(command->get_name());
    if (absl::StrContains(names.back(), word)) longer.push_back(names.back());
  }
  constexpr size_t kMinSearchLength = 4;  // shorter words occur in many names
  if (word.size() < kMinSearchLength || longer.empty()) return NearestHint(Nearest(word, names));
  return absl::StrCat("; there is ", absl::StrJoin(longer, ", "));
}

// The error of words that `app` could not parse.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error) {
  if (absl::c_linear_search(app.remaining(), "help")) {
    return "there is no command 'help': `croutctl --help` lists the commands, `croutctl COMMAND "
           "--help` describes one";
  }
  if (!app.get_subcommands().empty()) {
    const CLI::App* command = app.get_subcommands().front();
    const bool unknown = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    return absl::StrCat(error.what(),
                        unknown ? NearestHint(NearestOption(*command, app.remaining())) : "",
                        " (`croutctl ", command->get_name(), " --help`)");
  }
  for (const std::string& word : app.remaining()) {
    if (absl::StartsWith(word, "-")) {
      return absl::StrCat("there is no option '", Printable(word), "' (`croutctl --help`)");
    }
    return absl::StrCat("there is no command '", Printable(word), "'", LikelyCommands(app, word),
                        " (`croutctl --help` lists them)");
  }
  return absl::StrCat(error.what(), " (`croutctl --help`)");
}

// Detects `--server= list`, often caused by an unset variable: the parser would take the next word
// as the value.
std::string WithoutValue(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (absl::StartsWith(word, "--") && absl::EndsWith(word, "=")) return word;
  }
  return "";
}

// Lists the commands that have no group yet under this heading of the help.
void EndGroup(CLI::App* app, const std::string& heading) {
  for (CLI::App* command : app->get_subcommands({})) {
    if (command->get_group() == "Subcommands") command->group(heading);
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
    // The parser may have stopped before --json.
    PrintError(absl::c_linear_search(words, "--json"), "USAGE", message, kBadUsage);
    return kBadUsage;
  };
  if (const std::string word = WithoutValue(words); !word.empty()) {
    return refuse(absl::StrCat(Printable(word), " has no value. Give a value or omit the option"));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return refuse(UsageError(app, error));
  }
  return session.Run();
}

}  // namespace

std::string Nearest(const std::string& word, const std::vector<std::string>& words) {
  std::string nearest;
  size_t least = std::max<size_t>(1, word.size() / 2);
  for (const std::string& candidate : words) {
    const size_t distance = Distance(word, candidate);
    if (distance > least || (distance == least && !nearest.empty())) continue;
    nearest = candidate;
    least = distance;
  }
  return nearest;
}

void AddCommands(CLI::App* app, Session* session) {
  app->formatter(std::make_shared<HelpFormatter>());  // commands inherit it when they are added
  AddFactorCommands(app, session);
  AddSolveCommands(app, session);
  AddBatchCommands(app, session);
  AddSchurCommand(app, session);
  AddRrefCommand(app, session);
  AddSeriesCommand(app, session);
  EndGroup(app, "Factor and solve");
  AddGetCommand(app, session);
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
