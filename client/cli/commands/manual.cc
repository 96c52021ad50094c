// SPDX-License-Identifier: Apache-2.0

// help, completion, man, version
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/help/help.h"
#include "client/cli/options/option_values.h"
#include "client/cli/report/text.h"
#include "crout_version.h"

namespace crout::cli {
namespace {

// Writes to a file, or to standard output if `path` is empty.
absl::Status WriteText(const Session& session, const std::string& path, const std::string& text) {
  if (path.empty()) {
    session.PrintText(Json(text), text);
    return absl::OkStatus();
  }
  return WriteTextFile(path, text);
}

absl::Status RunCompletion(const CLI::App& app, const Session& session, const std::string& shell,
                           const std::string& output) {
  const auto make = shell == "bash"  ? BashCompletion
                    : shell == "zsh" ? ZshCompletion
                                     : FishCompletion;
  return WriteText(session, output, make(EntryOf(app), CommandsOf(app)));
}

// Prints one page, or writes all of them to a directory.
absl::Status RunMan(const CLI::App& app, const Session& session, const std::string& wanted,
                    const std::string& directory) {
  const CommandEntry program = EntryOf(app);
  const std::vector<CommandEntry> commands = CommandsOf(app);
  const std::string main_page = MainPage(program, commands, CROUT_VERSION);
  absl::Status status;
  if (wanted.empty()) {
    status = WriteText(session, directory.empty() ? "" : directory + "/croutctl.1", main_page);
  }
  for (const CommandEntry& command : commands) {
    if (directory.empty() && command.name != wanted) continue;
    const std::string path =
        directory.empty() ? "" : absl::StrCat(directory, "/croutctl-", command.name, ".1");
    status.Update(WriteText(session, path, CommandPage(program, command, CROUT_VERSION)));
  }
  return status;
}

// Prints the help of a command, or of croutctl if `name` is empty.
absl::Status RunHelp(const CLI::App& app, const Session& session, const std::string& name) {
  // App::help() of croutctl would describe the command that was parsed, help.
  const CLI::App& described = name.empty() ? app : *app.get_subcommand(name);
  const std::string text =
      app.get_formatter()->make_help(&described, "", CLI::AppFormatMode::Normal);
  session.PrintText(Json(text), text);
  return absl::OkStatus();
}

absl::Status RunVersion(const Session& session) {
  session.PrintText(Json{{"version", CROUT_VERSION}, {"commit", CROUT_COMMIT}},
                    "croutctl " CROUT_VERSION " (" CROUT_COMMIT ")\n");
  return absl::OkStatus();
}

}  // namespace

void AddManualCommands(CLI::App* app, Session* session) {
  const auto word = std::make_shared<std::string>();
  const auto output = std::make_shared<std::string>();

  CLI::App* help =
      session->AddLocalCommand(app, "help", "Show the help of croutctl or of a command",
                               [=] { return RunHelp(*app, *session, *word); });
  help->add_option("command", *word, "Command to describe [default: croutctl]");

  CLI::App* completion =
      session->AddLocalCommand(app, "completion", "Print the completion script of a shell",
                               [=] { return RunCompletion(*app, *session, *word, *output); });
  completion->add_option("shell", *word, "Shell: bash, zsh or fish")
      ->required()
      ->check(OneOf({"bash", "zsh", "fish"}));
  BeginSection(completion, "Output");
  completion->add_option("-o,--output", *output, "Write the script to this file")
      ->type_name("FILE");

  CLI::App* man = session->AddLocalCommand(app, "man", "Print a manual page",
                                           [=] { return RunMan(*app, *session, *word, *output); });
  man->add_option("command", *word, "Command whose page is printed [default: croutctl]");
  BeginSection(man, "Output");
  man->add_option("-o,--output", *output, "Write all pages to this directory")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);

  session->AddLocalCommand(app, "version", "Show the version of croutctl",
                           [=] { return RunVersion(*session); });
}

}  // namespace crout::cli
