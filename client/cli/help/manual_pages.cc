// SPDX-License-Identifier: Apache-2.0

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/exit_codes.h"
#include "client/cli/help/help.h"

namespace crout::cli {
namespace {

// Escapes text for roff: no requests at the start of a line, hyphens that can be copied.
std::string Roff(const std::string& text) {
  const std::string escaped = absl::StrReplaceAll(
      text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
  return escaped.empty() || (escaped[0] != '.' && escaped[0] != '\'') ? escaped : "\\&" + escaped;
}

std::string Heading(const std::string& title, const std::string& version) {
  return absl::StrCat(".TH ", absl::AsciiStrToUpper(Roff(title)), " 1 \"\" \"Crout ", version,
                      "\" \"Crout\"\n");
}

void AppendOption(const OptionEntry& option, std::string* page) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + Roff(name) + "\\fR");
  absl::StrAppend(page, ".TP\n", absl::StrJoin(names, ", "));
  if (!option.value.empty()) absl::StrAppend(page, " \\fI", Roff(option.value), "\\fR");
  absl::StrAppend(page, "\n", Roff(absl::StrCat(option.description, Remarks(option))), "\n");
}

// Appends the options with a heading for each section.
void AppendOptions(const std::vector<OptionEntry>& options, std::string* page) {
  std::string section;
  for (const OptionEntry& option : options) {
    if (option.section != section) absl::StrAppend(page, ".SS ", Roff(option.section), "\n");
    section = option.section;
    AppendOption(option, page);
  }
}

void AppendExitCodes(std::string* page) {
  absl::StrAppend(page, ".SH EXIT STATUS\n.TP\n0\nsuccess\n");
  for (const ExitCode& code : ExitCodes()) {
    absl::StrAppend(page, ".TP\n", code.code, "\n", Roff(code.meaning), "\n");
  }
}

void AppendExamples(const CommandEntry& command, std::string* page) {
  absl::StrAppend(page, ".SH EXAMPLES\n.nf\n");
  for (const std::string& example : command.examples) absl::StrAppend(page, Roff(example), "\n");
  absl::StrAppend(page, ".fi\n");
}

}  // namespace

std::string MainPage(const CommandEntry& program, const std::vector<CommandEntry>& commands,
                     const std::string& version) {
  std::string page = Heading("croutctl", version);
  absl::StrAppend(&page, ".SH NAME\ncroutctl \\- command-line client of Crout\n",
                  ".SH SYNOPSIS\n\\fBcroutctl\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR "
                  "[\\fIARGUMENTS\\fR]\n.SH DESCRIPTION\n",
                  Roff(program.description), ".\n.SH COMMANDS\n");
  for (const CommandEntry& command : commands) {
    absl::StrAppend(&page, ".TP\n\\fB", Roff(command.name), "\\fR\n", Roff(command.description),
                    "; see \\fBcroutctl\\-", Roff(command.name), "\\fR(1)\n");
  }
  absl::StrAppend(&page, ".SH OPTIONS\nOptions may precede or follow the command.\n");
  AppendOptions(program.options, &page);
  AppendExamples(program, &page);
  AppendExitCodes(&page);
  return page;
}

std::string CommandPage(const CommandEntry& program, const CommandEntry& command,
                        const std::string& version) {
  const std::string name = "croutctl-" + command.name;
  std::string page = Heading(name, version);
  absl::StrAppend(&page, ".SH NAME\n", Roff(name), " \\- ", Roff(command.description),
                  "\n.SH SYNOPSIS\n\\fBcroutctl ", Roff(command.name), "\\fR [\\fIOPTIONS\\fR]");
  for (const OptionEntry& argument : command.arguments) {
    absl::StrAppend(&page, argument.required ? " \\fI" : " [\\fI", Roff(argument.names[0]),
                    argument.required ? "\\fR" : "\\fR]");
  }
  absl::StrAppend(&page, "\n.SH DESCRIPTION\n", Roff(command.description), ".\n");
  if (!command.arguments.empty()) absl::StrAppend(&page, ".SH ARGUMENTS\n");
  for (const OptionEntry& argument : command.arguments) AppendOption(argument, &page);
  absl::StrAppend(&page, ".SH OPTIONS\n");
  AppendOptions(command.options, &page);
  absl::StrAppend(&page, ".SH GLOBAL OPTIONS\n");
  AppendOptions(program.options, &page);
  AppendExamples(command, &page);
  absl::StrAppend(&page, ".SH EXIT STATUS\nSee \\fBcroutctl\\fR(1).\n");
  absl::StrAppend(&page, ".SH SEE ALSO\n\\fBcroutctl\\fR(1)\n");
  return page;
}

}  // namespace crout::cli
