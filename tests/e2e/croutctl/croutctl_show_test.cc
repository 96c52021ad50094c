// SPDX-License-Identifier: Apache-2.0

// Tests how much croutctl prints, and where: summaries, -v, -q, --show, --progress and help.
#include <algorithm>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/e2e/croutctl/croutctl.h"

namespace crout::e2e::croutctl_show_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kSolution[] =
    "%%MatrixMarket matrix array real general\n3 1\n0.4375\n-0.15\n0.125\n";

int64_t Lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

std::vector<std::string> Words(const std::string& text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

TEST_F(CroutctlTest, TheSummaryHasAtMostFiveLines) {
  const Finished factor = daemon_.Ctl({"factor", matrix_, "--name=demo", "--condition"});
  EXPECT_EQ(factor.exit_code, 0) << factor.errors;
  EXPECT_EQ(factor.errors, "");
  EXPECT_EQ(Lines(factor.output), 5) << factor.output;
  EXPECT_THAT(factor.output, ContainsRegex("^handle    [a-z2-7]+ \\(demo, version 1\\)\n"));
  EXPECT_THAT(factor.output, HasSubstr("\nmatrix    3 x 3 f64, 5 entries\n"));
  EXPECT_THAT(factor.output, ContainsRegex("\nmethod    [a-z_]+ on host in [0-9.]+[um]?s, f64, "));
  EXPECT_THAT(factor.output, ContainsRegex("\naccuracy  info 0, quality .*, rcond "));
  EXPECT_THAT(factor.output, ContainsRegex("\nlease     until 20[0-9T:-]+Z\n"));
  const std::string x = directory_.File("x");
  const std::vector<std::vector<std::string>> commands = {
      {"describe", "demo"},
      {"solve", "demo", "--ones", "--error-bound", "-o", x},
      {"lu", matrix_, "--ones", "--error-bound", "-o", x},
      {"factor-batch", matrix_, matrix_, "--name=pair"},
      {"solve-batch", "pair", "--ones", "-o", x},
      {"schur", matrix_, "--leading-order=1", "-o", x},
      {"rref", matrix_, "-o", x},
      {"download", "demo", "-o", x},
      {"iterations", "demo"},
      {"renew", "demo"},
      {"status"},
      {"estimate", "1000"},
      {"analyze", matrix_},
      {"verify", matrix_, matrix_, matrix_},
  };
  for (const auto& command : commands) {
    const Finished summary = daemon_.Ctl(command);
    const std::string name = command[0];
    if (name == "iterations" || name == "verify") {  // fail with these inputs
      EXPECT_EQ(summary.output, "") << name;
      continue;
    }
    EXPECT_EQ(summary.exit_code, 0) << name << summary.errors;
    EXPECT_LE(Lines(summary.output), 5) << summary.output;
    EXPECT_GE(Lines(summary.output), 2) << name;
    std::vector<std::string> all = command;
    all.push_back("--show=wide");
    EXPECT_GT(daemon_.Ctl(all).output.size(), 0u);
  }
}

TEST_F(CroutctlTest, VerbosePrintsAllFields) {
  const std::string handle = Factor();
  const Json json = RunJson({"describe", handle});
  for (const char* option : {"-v", "--verbose", "--show=wide"}) {
    const std::string output = daemon_.Ctl({"describe", handle, option}).output;
    for (const char* key : {"handle", "n", "info", "norm_one", "has_matrix", "create_time"}) {
      ASSERT_TRUE(json.contains(key));
      EXPECT_THAT(output, ContainsRegex(std::string("(^|\n)") + key + " +")) << option;
    }
  }
  EXPECT_EQ(Json::parse(daemon_.Ctl({"describe", handle, "--show=json"}).output), json);
  EXPECT_THAT(daemon_.Ctl({"list"}).output, StartsWith("handle "));
  EXPECT_THAT(daemon_.Ctl({"list"}).output, Not(HasSubstr("factor_dtype")));
  EXPECT_THAT(daemon_.Ctl({"list", "-v"}).output, HasSubstr("factor_dtype"));
}

TEST_F(CroutctlTest, QuietPrintsHandlesAlone) {
  const Finished factor = daemon_.Ctl({"factor", matrix_, "--name=a", "-q"});
  const std::string handle(absl::StripSuffix(factor.output, "\n"));
  EXPECT_EQ(handle.size(), 26u) << factor.output;
  EXPECT_EQ(RunJson({"describe", "a"})["handle"], handle);
  const std::string other = Factor();
  EXPECT_EQ(Words(daemon_.Ctl({"list", "-q"}).output), (std::vector<std::string>{other, handle}));
  EXPECT_EQ(daemon_.Ctl({"list", "--show=name", "--name=a"}).output, handle + "\n");
  EXPECT_EQ(daemon_.Ctl({"refactor", "a", matrix_, "-q"}).output, handle + "\n");
  EXPECT_EQ(daemon_.Ctl({"renew", "a", "--quiet"}).output, handle + "\n");
  EXPECT_EQ(daemon_.Ctl({"devices", "-q"}).output, "host\n");
  const Finished status = daemon_.Ctl({"status", "-q"});
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_EQ(status.output + status.errors, "");
  const Finished solved = daemon_.Ctl({"solve", "a", "--ones", "-q"});
  EXPECT_EQ(solved.output, kSolution);
  EXPECT_EQ(solved.errors, "");
  const std::string series = directory_.File("A_0.mtx");
  WriteFile(series, kMatrix);
  const Finished kept = daemon_.Ctl(
      {"series", series, "--ones", "--keep", "--name=s", "-q", "-o", directory_.File("solutions")});
  EXPECT_EQ(kept.output, RunJson({"describe", "s"})["handle"].get<std::string>() + "\n");
  EXPECT_EQ(daemon_.Ctl({"release", "a", "-q"}).output, handle + "\n");
}

TEST_F(CroutctlTest, AnUnnamedSolutionIsOnStandardOutput) {
  Factor();
  const std::string handle = Factor();
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"solve", handle, "--ones"}, {"lu", matrix_, "--ones"}}) {
    const Finished finished = daemon_.Ctl(command);
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_EQ(finished.output, kSolution);
    EXPECT_THAT(finished.errors, StartsWith("backward_error  "));
    EXPECT_THAT(finished.errors, HasSubstr("solution        1 column, on standard output\n"));
    EXPECT_LE(Lines(finished.errors), 5);
  }
  const Finished text = daemon_.Ctl({"solve", handle, "--ones", "--format=txt"});
  EXPECT_EQ(text.output, "0.4375\n-0.15\n0.125\n");
  // With a file, the summary is on standard output. With --json, the object is there.
  const std::string x = directory_.File("x.txt");
  const Finished named = daemon_.Ctl({"solve", handle, "--ones", "-o", x});
  EXPECT_THAT(named.output, StartsWith("backward_error  "));
  EXPECT_THAT(named.output, HasSubstr("solution        1 column, in " + x + "\n"));
  EXPECT_EQ(named.errors, "");
  EXPECT_EQ(ReadFile(x), text.output);
  EXPECT_EQ(RunJson({"solve", handle, "--ones"})["nrhs"], 1);
}

TEST_F(CroutctlTest, ReleaseAllNeedsNoConfirmationWithoutATerminal) {
  EXPECT_EQ(daemon_.Ctl({"release", "--all"}).output, "released  0 of 0 factors\n");
  const std::string first = Factor(), second = Factor();
  const std::string other = RunJson({"factor", matrix_, "--tenant=other"})["handle"];
  const Json released = RunJson({"release", "--all"})["factors"];
  ASSERT_EQ(released.size(), 2u);
  EXPECT_EQ(released[0]["handle"], second);
  EXPECT_EQ(released[1], (Json{{"handle", first}, {"released", true}}));
  EXPECT_EQ(RunJson({"list"})["factors"].size(), 0u);
  EXPECT_EQ(RunJson({"release", "--all"})["factors"], Json::array());
  EXPECT_EQ(daemon_.Ctl({"release", "--all", "--yes", "--tenant=other", "-q"}).output,
            other + "\n");
  Factor();
  EXPECT_EQ(daemon_.Ctl({"release", "--all"}).output, "released  1 of 1 factor\n");
}

TEST_F(CroutctlTest, LeasesHaveDays) {
  const Json limits = RunJson({"status"})["limits"];
  EXPECT_THAT(daemon_.Ctl({"status", "-v"}).output,
              Not(HasSubstr(limits["max_lease"].get<std::string>())));
  for (const char* lease : {"90s", "15m", "12h", "0.5d", "1h30m"}) {
    EXPECT_EQ(daemon_.Ctl({"factor", matrix_, std::string("--lease=") + lease}).exit_code, 0)
        << lease;
  }
  EXPECT_EQ(daemon_.Ctl({"factor", matrix_, "--lease=7days"}).exit_code, 2);
  EXPECT_THAT(daemon_.Ctl({"list", "--timeout=0.00000001s"}).errors,
              HasSubstr("longer than --timeout=10ns"));
}

TEST_F(CroutctlTest, ProgressIsPrintedOnRequest) {
  const Finished quiet = daemon_.Ctl({"factor", matrix_});
  EXPECT_EQ(quiet.errors, "");
  const Finished lines = daemon_.Ctl({"factor", matrix_, "--progress"});
  EXPECT_THAT(lines.errors, StartsWith("upload  "));
  EXPECT_THAT(lines.errors, Not(HasSubstr("\x1b")));
  const Finished json = daemon_.Ctl({"factor", matrix_, "--progress", "--json"});
  const std::string first = json.errors.substr(0, json.errors.find('\n'));
  EXPECT_EQ(Json::parse(first)["progress"]["phase"], "receive") << json.errors;
  EXPECT_EQ(daemon_.Ctl({"factor", matrix_, "--no-progress"}).errors, "");
}

TEST_F(CroutctlTest, HelpIsACommand) {
  const Finished help = RunToEnd({ProgramPath("croutctl"), "help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.output, RunToEnd({ProgramPath("croutctl"), "--help"}).output);
  const Finished solve = RunToEnd({ProgramPath("croutctl"), "help", "solve"});
  EXPECT_EQ(solve.exit_code, 0);
  EXPECT_EQ(solve.output, RunToEnd({ProgramPath("croutctl"), "solve", "--help"}).output);
}

}  // namespace
}  // namespace crout::e2e::croutctl_show_test
