// SPDX-License-Identifier: Apache-2.0

// Tests output that is generated from the table of commands: manual pages, and shell completion,
// which is also run in a shell. Tests the view of `top`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/command_line.h"
#include "client/cli/commands/top.h"
#include "client/cli/help/help.h"
#include "client/cli/help/synonyms.h"
#include "kernels/util/nearest.h"

namespace crout::cli::cli_manual_test {
namespace {

using ::testing::HasSubstr;

class ManualTest : public ::testing::Test {
 protected:
  ManualTest() {
    AddCommands(&app_, &session_);
    program_ = EntryOf(app_);
    commands_ = CommandsOf(app_);
  }

  CLI::App app_{"Do things", "croutctl"};
  Session session_{&app_};
  CommandEntry program_;
  std::vector<CommandEntry> commands_;
};

// Returns the output of a shell command.
std::string Shell(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  std::string output;
  for (int c; (c = std::fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

TEST_F(ManualTest, TheTableHasWhatTheHelpHas) {
  ASSERT_GT(commands_.size(), 15u);
  for (const CommandEntry& command : commands_) {
    EXPECT_NE(command.description, "") << command.name;
    EXPECT_EQ(command.examples.size(), 2u) << command.name;
    EXPECT_THAT(app_.get_subcommand(command.name)->help(), ::testing::Not(HasSubstr("->")))
        << "names stand for themselves";
  }
  const auto solve = std::find_if(commands_.begin(), commands_.end(),
                                  [](const auto& command) { return command.name == "solve"; });
  ASSERT_NE(solve, commands_.end());
  ASSERT_EQ(solve->arguments.size(), 2u);
  EXPECT_TRUE(solve->arguments[0].required);
  EXPECT_TRUE(solve->arguments[1].file);
  const std::string help = app_.get_subcommand("solve")->help();
  for (const OptionEntry& option : solve->options) {
    EXPECT_THAT(help, HasSubstr(option.names.back()));
    EXPECT_NE(option.description, "");
    if (option.names.back() == "--dtype") {
      EXPECT_THAT(option.choices, ::testing::ElementsAre("f32", "f64", "c64", "c128"));
    }
    if (option.names.back() == "--nrhs") {
      EXPECT_EQ(option.default_text, "1");
    }
  }
}

TEST_F(ManualTest, HelpHasASynopsisSectionsAndExamples) {
  const std::string help = app_.get_subcommand("solve")->help();
  EXPECT_THAT(help,
              ::testing::StartsWith("Usage: croutctl solve [OPTIONS] FACTOR [RHS]\n\nSolve a "));
  for (const char* const section : {"Arguments", "Input", "Method", "Accuracy", "Output"}) {
    EXPECT_THAT(help, HasSubstr(std::string("\n\n") + section + ":\n  "));
  }
  EXPECT_THAT(help, HasSubstr("\n\nExamples:\n  croutctl solve demo "));
  EXPECT_THAT(help, HasSubstr("[needs --ones]\n"));
  EXPECT_THAT(help, ::testing::Not(HasSubstr("NOT_FOUND")));
  for (const absl::string_view line : absl::StrSplit(app_.help(), '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_THAT(app_.help(), HasSubstr("\n\nExit codes:\n   0  success\n   1  any other failure\n"));
}

TEST_F(ManualTest, SparseMethodsAreOffered) {
  std::map<std::string, std::set<std::string>> offered;  // values that are offered for each option
  for (const CommandEntry& command : commands_) {
    for (const OptionEntry& option : command.options) {
      offered[option.names.back()].insert(option.choices.begin(), option.choices.end());
    }
  }
  for (const char* const method : {"multifrontal", "klu", "cudss"}) {
    EXPECT_TRUE(offered["--algorithm"].contains(method)) << method;
    EXPECT_TRUE(offered["--solver"].contains(method)) << method;
  }
}

TEST_F(ManualTest, PagesHaveOptionsExamplesAndExitCodes) {
  const std::string main_page = MainPage(program_, commands_, "1.2.3");
  EXPECT_THAT(main_page, ::testing::StartsWith(".TH CROUTCTL 1 \"\" \"Crout 1.2.3\""));
  EXPECT_THAT(main_page, HasSubstr("\n.TP\n11\nNOT_FOUND: "));
  for (const CommandEntry& command : commands_) {
    const std::string name = absl::StrReplaceAll(command.name, {{"-", "\\-"}});
    EXPECT_THAT(main_page, HasSubstr("\\fBcroutctl\\-" + name + "\\fR(1)"));
    const std::string page = CommandPage(program_, command, "1.2.3");
    EXPECT_THAT(page, HasSubstr("\n.SH EXAMPLES\n"));
    EXPECT_THAT(page, HasSubstr("\n.SH EXIT STATUS\n"));
    EXPECT_THAT(page, HasSubstr("CROUT_SERVER"));
    EXPECT_THAT(page, ::testing::Not(HasSubstr("\n'"))) << "a request of roff";
  }
}

TEST_F(ManualTest, BashCompletesCommandsOptionsAndValues) {
  const std::string path = ::testing::TempDir() + "/crout_completion." + std::to_string(getpid());
  std::ofstream(path) << BashCompletion(program_, commands_);
  const auto complete = [&](const std::string& words, int index) {
    return Shell("bash --norc -c '. " + path + "; COMP_WORDS=(" + words +
                 "); COMP_CWORD=" + std::to_string(index) + "; _croutctl; echo ${COMPREPLY[@]}'");
  };
  EXPECT_EQ(complete("croutctl sol", 1), "solve solve-batch\n");
  EXPECT_EQ(complete("croutctl solve-batch x --mem", 3), "--members\n");
  EXPECT_EQ(complete("croutctl --json sc", 2), "schur\n");
  EXPECT_EQ(complete("croutctl solve x --conj", 3), "--conjugate-transpose\n");
  EXPECT_EQ(complete("croutctl solve x --ser", 3), "--server\n");
  EXPECT_EQ(complete("croutctl solve x --dtype c", 4), "c64 c128\n");
  EXPECT_EQ(complete("croutctl solve x --dtype = f", 5), "f32 f64\n");
  EXPECT_EQ(complete("croutctl completion z", 2), "zsh\n");
  const std::string begun = path.substr(0, path.size() - 1);
  EXPECT_EQ(complete("croutctl factor " + begun, 2), path + "\n");
  EXPECT_EQ(complete("croutctl factor-batch " + begun, 2), path + "\n");
  EXPECT_EQ(complete("croutctl series x -o " + begun, 4), path + "\n");
  unlink(path.c_str());
}

TEST_F(ManualTest, OtherShellsGetEveryOption) {
  const std::string zsh = ZshCompletion(program_, commands_);
  EXPECT_THAT(zsh, ::testing::StartsWith("#compdef croutctl\n"));
  EXPECT_THAT(zsh, HasSubstr("'--format=[Format of the output file\\: mtx"));
  const std::string fish = FishCompletion(program_, commands_);
  EXPECT_THAT(fish,
              HasSubstr("-n '__fish_seen_subcommand_from solve' -l dtype -x -a 'f32 f64 c64"));
  EXPECT_THAT(fish, HasSubstr("-s o -l output -r -F"));
}

TEST_F(ManualTest, HelpAndManCompleteTheNamesOfCommands) {
  for (const CommandEntry& command : commands_) {
    if (command.name != "help" && command.name != "man") continue;
    EXPECT_EQ(command.arguments[0].choices.size(), commands_.size()) << command.name;
  }
}

// Every name that a hint gives exists.
TEST_F(ManualTest, SynonymsNameCommandsAndOptions) {
  std::vector<std::string> names;
  for (const CommandEntry& command : commands_) names.push_back(command.name);
  const std::pair<const char*, const char*> commands[] = {
      {"delete", "; use release"},
      {"rm", "; use release"},
      {"purge", "; use release --all"},
      {"get", "; use download"},
      {"info", "; use describe"},
      {"Ls", "; use list"},
      {"factorise", "; use factor"},
      {"delte", "; use release"},
      {"slove", "; the nearest is solve"},
      {"batch", "; there is factor-batch, solve-batch"},
      {"xyzzy", ""},
      {"frobnicate", ""},
  };
  for (const auto& [word, hint] : commands) EXPECT_EQ(CommandHint(word, names), hint) << word;
  const auto option_hint = [&](const std::string& command, const std::string& word) {
    std::vector<std::string> options;
    for (const CLI::Option* option : app_.get_subcommand(command)->get_options()) {
      for (const std::string& name : option->get_lnames()) options.push_back(name);
    }
    for (const CLI::Option* option : app_.get_options()) {
      for (const std::string& name : option->get_lnames()) options.push_back(name);
    }
    return OptionHint(word, options);
  };
  EXPECT_EQ(option_hint("factor", "--algoritm=getrf"), "; the nearest is --algorithm");
  EXPECT_EQ(option_hint("factor", "--method=getrf"), "; use --algorithm");
  EXPECT_EQ(option_hint("factor", "--ttl"), "; use --lease");
  EXPECT_EQ(option_hint("factor", "--drop-matrix"), "; use --no-keep-matrix");
  EXPECT_EQ(option_hint("factor", "--keep_matrix=false"), "; use --no-keep-matrix");
  EXPECT_EQ(option_hint("factor", "--pivoting=interval"), "; use --pivot-rule");
  EXPECT_EQ(option_hint("factor", "--rcond"), "; use --condition");
  EXPECT_EQ(option_hint("schur", "--leading=2"), "; use --leading-order");
  EXPECT_EQ(option_hint("solve", "--max-refinement-steps=2"), "; use --refine");
  EXPECT_EQ(option_hint("solve", "--out=x.mtx"), "; use --output");
  EXPECT_EQ(option_hint("list", "--namespace=x"), "; use --tenant");
  EXPECT_EQ(option_hint("top", "--refresh=2s"), "; use --interval");
  EXPECT_EQ(option_hint("factor", "--refresh=2s"), "") << "factor has no --interval of time";
  EXPECT_EQ(option_hint("release", "--force"), "; use --yes");
  EXPECT_EQ(option_hint("factor", "--bogus"), "");
  EXPECT_EQ(ValueHint("float32", {"f32", "f64"}), "; use f32");
  EXPECT_EQ(ValueHint("csv", {"mtx", "txt"}), "; use txt");
  EXPECT_EQ(ValueHint("gertf", {"auto", "getrf"}), "; the nearest is getrf");
}

// croutctl's options have the names of the C++ fields, with dashes.
TEST_F(ManualTest, OptionsHaveTheNamesOfTheFields) {
  const auto expect = [&](const std::string& command, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      EXPECT_NE(app_.get_subcommand(command)->get_option_no_throw("--" + name), nullptr)
          << command << " --" << name;
    }
  };
  expect("factor", {"algorithm",          "device",         "factor-dtype", "precision",
                    "equilibrate",        "no-keep-matrix", "condition",    "determinant",
                    "pivot-threshold",    "pivot-rule",     "interval",     "threshold",
                    "tolerance",          "section-size",   "block-size",   "sweep-limit",
                    "absolute-tolerance", "variant",        "lease",        "name",
                    "request-id"});
  expect("solve", {"transpose", "solver", "no-verify", "error-bound", "refine", "solver-tolerance",
                   "componentwise-error", "refine-componentwise"});
  expect("schur", {"leading-order", "keep"});
  expect("rref", {"augmented", "tolerance", "device"});
  expect("series", {"strategy", "accuracy", "transpose"});
}

TEST(NearestTest, OneOrTwoSlipsAreFound) {
  const std::vector<std::string> words = {"solve", "release", "list", "lu"};
  EXPECT_EQ(Nearest("slove", words), "solve");
  EXPECT_EQ(Nearest("relase", words), "release");
  EXPECT_EQ(Nearest("lst", words), "list");
  EXPECT_EQ(Nearest("frobnicate", words), "");
  EXPECT_EQ(Nearest("bogus", {"ones"}), "");
  EXPECT_EQ(Nearest("", words), "");
}

TEST(TopViewTest, ShowsSharesAndWhatIsFenced) {
  ServerInfo info;
  info.version = "0.1.0";
  info.start_time = absl::FromUnixSeconds(1000);
  info.draining = true;
  info.cached_factors = 3;
  info.host_budget_bytes = 1 << 20;
  info.host_reserved_bytes = 1 << 18;
  info.limits.queue_capacity = 256;
  info.devices.resize(2);
  DeviceStatus& device = info.devices[0];
  device.name = "cuda:0";
  device.description = "a\x1b[2J";
  device.healthy = true;
  device.streams = 4;
  device.streams_busy = 1;
  device.queue_depth = 7;
  device.budget_bytes = 1000;
  device.reserved_bytes = 2000;
  info.devices[1].name = "cuda:1";
  EXPECT_EQ(TopView("host:1", info, absl::FromUnixSeconds(1000 + 3723)),
            "host:1  croutd 0.1.0  up 1h2m3s  draining\n"
            "cache  3 factors  host memory [###       ] 256.0 KiB of 1.0 MiB\n\n"
            "device  streams busy         queued    memory\n"
            "cuda:0  [###       ] 1 of 4  7 of 256  [##########] 2.0 KiB of 1000 B  a\\x1b[2J\n"
            "cuda:1  [          ] 0 of 0  0 of 256  [          ] 0 B of 0 B         fenced off\n");
}

TEST(TopViewTest, ShowsTheTenantsOfMostBytes) {
  ServerInfo info;
  info.start_time = absl::FromUnixSeconds(1000);
  info.tenants.assign(kTopTenants + 3, {.tenant = "t", .quota = {}});
  info.tenants[0] = {.tenant = "alice",
                     .cached_factors = 12,
                     .device_bytes = int64_t{3} << 30,
                     .host_bytes = 1 << 20,
                     .calls = 2,
                     .store_bytes = 5 << 20,
                     .bytes_in_flight = 6 << 10,
                     .queued_jobs = 7,
                     .running_jobs = 3,
                     .device_seconds = 1.5,
                     .quota = TenantQuota()};
  info.tenants[0].quota->device_seconds_per_minute = 90;
  const std::string view = TopView("host:1", info, absl::FromUnixSeconds(1000));
  EXPECT_THAT(view,
              ::testing::HasSubstr(
                  "\n\ntenant  factors  devices  host     store    in flight  queued  running  "
                  "device time  calls\n"
                  "alice   12       3.0 GiB  1.0 MiB  5.0 MiB  6.0 KiB    7       3        "
                  "1.5s         2\n"
                  "t       0        0 B      0 B      0 B      0 B        0       0        "
                  "-            0\n"));
  EXPECT_THAT(view, ::testing::EndsWith("\nand 3 more\n"));
}

}  // namespace
}  // namespace crout::cli::cli_manual_test
