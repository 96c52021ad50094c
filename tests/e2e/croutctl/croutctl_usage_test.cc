// SPDX-License-Identifier: Apache-2.0

// Tests exit codes and error messages of croutctl.
#include <tuple>
#include <utility>

#include "tests/e2e/croutctl/croutctl.h"

namespace crout::e2e::croutctl_usage_test {
namespace {

// Each status has its own exit code, and --json prints an object that names the status.
TEST_F(CroutctlTest, RefusedCallsExitWithACodeForEachStatus) {
  const std::string handle =
      Json::parse(daemon_.Ctl({"--json", "factor", singular_}).output)["handle"];
  const std::string bad = directory_.File("bad.mtx");
  WriteFile(bad, "%%MatrixMarket this is no matrix\n");
  const std::vector<std::tuple<std::vector<std::string>, std::string, int>> refused = {
      {{"describe", "aaaaaaaaaaaaaaaaaaaaaaaaaa"}, "NOT_FOUND", 11},
      {{"solve", handle, "--ones"}, "FAILED_PRECONDITION", 13},
      {{"lu", singular_, "--ones"}, "FAILED_PRECONDITION", 13},
      {{"schur", singular_, "--leading-order=2"}, "FAILED_PRECONDITION", 13},
      {{"schur", matrix_, "--leading-order=4"}, "INVALID_ARGUMENT", 12},
      {{"rref", matrix_, "--augmented=4"}, "INVALID_ARGUMENT", 12},
      {{"factor", singular_, "--algorithm=crout_lu"}, "UNIMPLEMENTED", 17},
      {{"factor", bad}, "INVALID_ARGUMENT", 12},
      {{"estimate", "--", "-1"}, "INVALID_ARGUMENT", 12},
      {{"factor", matrix_, "--tolerance=0.5"}, "INVALID_ARGUMENT", 12},
      {{"factor", matrix_, "--algorithm=getrf", "--threshold=0.5"}, "INVALID_ARGUMENT", 12},
      {{"factor", matrix_, "--algorithm=getrf", "--interval", "1", "2"}, "INVALID_ARGUMENT", 12},
      {{"factor", matrix_, "--algorithm=getrf", "--pivot-rule=threshold"}, "INVALID_ARGUMENT", 12},
      {{"factor", matrix_, "--algorithm=cmpp", "--threshold=0.5"}, "INVALID_ARGUMENT", 12},
      {{"factor", matrix_, "--algorithm=gauss_jordan"}, "FAILED_PRECONDITION", 13},
      {{"lu", matrix_, "--ones", "--solver=trsm", "--solver-tolerance=0.5"},
       "INVALID_ARGUMENT",
       12},
      {{"factor", matrix_, "--timeout=1ns"}, "DEADLINE_EXCEEDED", 16},
  };
  for (auto [arguments, status, exit_code] : refused) {
    const Finished said = daemon_.Ctl(arguments);
    EXPECT_EQ(said.exit_code, exit_code) << said.errors;
    EXPECT_THAT(said.errors, ::testing::HasSubstr("croutctl: " + status + ": "));
    EXPECT_EQ(said.output, "");
    arguments.insert(arguments.begin(), "--json");
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, exit_code);
    EXPECT_EQ(finished.output, "");
    // The object is on the last line. A warning may precede it.
    const size_t line = finished.errors.find("{\"error\"");
    ASSERT_NE(line, std::string::npos) << finished.errors;
    const Json error = Json::parse(finished.errors.substr(line))["error"];
    EXPECT_EQ(error["code"], status);
    EXPECT_EQ(error["exit_code"], exit_code);
    EXPECT_NE(error["message"], "");
  }
  EXPECT_EQ(
      Json::parse(
          daemon_.Ctl({"--json", "describe", std::string(26, 'a')}).errors)["error"]["reason"],
      "SERVER_RESTARTED");
  EXPECT_THAT(daemon_.Ctl({"schur", singular_, "--leading-order=2"}).errors,
              ::testing::HasSubstr("the leading block (order 2) is singular: row 2 (1-based) is"));
}

TEST_F(CroutctlTest, AFullServerHasASeparateExitCode) {
  Daemon small({"--host-budget=4MiB"});
  const Finished finished = small.Ctl({"bench", "--mode=factor", "--n=1024", "--requests=1"});
  EXPECT_EQ(finished.exit_code, 14) << finished.errors;
  EXPECT_THAT(finished.errors, ::testing::StartsWith("croutctl: RESOURCE_EXHAUSTED: "));
}

TEST_F(CroutctlTest, UnknownCommandsAreCalledSoWithTheNearest) {
  const Finished finished = daemon_.Ctl({"slove", matrix_});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.errors, ::testing::HasSubstr("no command 'slove'; the nearest is solve"));
  const Finished json = daemon_.Ctl({"realise", "--json"});
  EXPECT_EQ(json.exit_code, 2);
  const Json error = Json::parse(json.errors)["error"];
  EXPECT_EQ(error["code"], "USAGE");
  EXPECT_THAT(error["message"].get<std::string>(), ::testing::HasSubstr("nearest is release"));
  EXPECT_THAT(daemon_.Ctl({"--frob"}).errors, ::testing::HasSubstr("no option '--frob'"));
  EXPECT_THAT(daemon_.Ctl({"xyzzy"}).errors, ::testing::Not(::testing::HasSubstr("nearest")));
  EXPECT_THAT(daemon_.Ctl({"batch", matrix_}).errors,
              ::testing::HasSubstr("no command 'batch'; there is factor-batch, solve-batch"));
  EXPECT_THAT(daemon_.Ctl({"delete", "x"}).errors,
              ::testing::HasSubstr("no command 'delete'; use release (`croutctl"));
  EXPECT_THAT(daemon_.Ctl({"help", "slove"}).errors,
              ::testing::HasSubstr("no command 'slove'; the nearest is solve"));
}

TEST_F(CroutctlTest, UnknownOptionsAreAnsweredWithTheNearest) {
  const Finished finished = daemon_.Ctl({"factor", matrix_, "--algoritm=getrf"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.errors,
              ::testing::HasSubstr("; the nearest is --algorithm (`croutctl factor"));
  EXPECT_THAT(daemon_.Ctl({"factor", matrix_, "--ttl=1h"}).errors,
              ::testing::HasSubstr("no option '--ttl'; use --lease (`croutctl factor"));
  EXPECT_THAT(daemon_.Ctl({"--host"}).errors,
              ::testing::HasSubstr("no option '--host'; use --server (`croutctl --help`)"));
  EXPECT_THAT(daemon_.Ctl({"factor", matrix_, "--factor-dtype=double"}).errors,
              ::testing::HasSubstr("c128; use f64 (`croutctl factor"));
  for (const char* far : {"--xyzzyplugh", "--bogus"}) {
    EXPECT_THAT(daemon_.Ctl({"factor", matrix_, far}).errors,
                ::testing::Not(::testing::HasSubstr("nearest")));
  }
}

TEST_F(CroutctlTest, BadValuesAreNamedWithTheExpectation) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"factor"}, "MATRIX is missing (`croutctl factor --help`)"},
      {{}, "the command is missing"},
      {{"solve", "h", matrix_, "--ones"}, "RHS cannot be given with --ones"},
      {{"schur", matrix_, "--keep=a"}, "--keep: 'a' is not an integer"},
      {{"factor", matrix_, "--section-size=x"}, "--section-size: 'x' is not an integer"},
      {{"factor", matrix_, "--pivot-threshold=2"}, "2 is not in the range (0, 1]"},
      {{"factor", matrix_, "--algorithm=gertf"}, "'gertf' is none of auto, getrf"},
      {{"factor", matrix_, "--algorithm=gertf"}, "; the nearest is getrf"},
      {{"--timeout=soon", "list"}, "such as 90s, 15m, 1h30m or 7d (`croutctl --help`)"},
      {{"list", "--timeout=1ns"}, "the command took longer than --timeout=1ns"},
  };
  for (const auto& [arguments, message] : cases) {
    EXPECT_THAT(daemon_.Ctl(arguments).errors, ::testing::HasSubstr(message));
  }
  const Finished variable =
      RunToEnd({"/usr/bin/env", "CROUT_TLS=maybe", ProgramPath("croutctl"), "list"});
  EXPECT_THAT(variable.errors,
              ::testing::HasSubstr("CROUT_TLS: 'maybe' is neither true nor false"));
}

TEST_F(CroutctlTest, MessagesContainNoTerminalControls) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"factor", "\x1b[2Jmissing"}, {"describe", "\x1b[2Jnobody"}}) {
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_NE(finished.exit_code, 0);
    EXPECT_THAT(finished.errors, ::testing::HasSubstr("\\x1b[2J"));
    EXPECT_THAT(finished.errors, ::testing::Not(::testing::HasSubstr("\x1b")));
  }
}

TEST_F(CroutctlTest, TheHelpListsTheExitCodes) {
  const Finished help = daemon_.Ctl({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, ::testing::HasSubstr("  11  NOT_FOUND: "));
  EXPECT_THAT(help.output, ::testing::HasSubstr("  19  FILE: "));
  for (const char* const command : {"solve", "verify"}) {
    const Finished finished = daemon_.Ctl({command, "--help"});
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_THAT(finished.output, ::testing::HasSubstr("\n`croutctl --help` lists "));
  }
  const std::string factor = daemon_.Ctl({"factor", "--help"}).output;
  EXPECT_THAT(factor, ::testing::HasSubstr("gauss_jordan"));
  EXPECT_THAT(factor, ::testing::HasSubstr("multifrontal"));
  EXPECT_THAT(factor, ::testing::Not(::testing::HasSubstr("irr_lu"))) << "of batches";
}

TEST_F(CroutctlTest, HelpIgnoresTheEnvironment) {
  const auto run = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"/usr/bin/env", "CROUT_SERVER=nowhere", "CROUT_TENANT=a b", "CROUT_TLS=maybe",
                      "CROUT_TOKEN_FILE=/no/token", ProgramPath("croutctl")});
    return RunToEnd(arguments);
  };
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"help"},
                                                    {"--help"},
                                                    {"-h"},
                                                    {"help", "solve"},
                                                    {"solve", "--help"},
                                                    {"version"},
                                                    {"--version"},
                                                    {"man"},
                                                    {"completion", "bash"},
                                                    {"analyze", matrix_}}) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.exit_code, 0) << arguments[0] << ": " << finished.errors;
  }
  const Finished list = run({"list"});
  EXPECT_EQ(list.exit_code, 2);
  EXPECT_THAT(list.errors, ::testing::HasSubstr("CROUT_SERVER: "));
}

TEST_F(CroutctlTest, VersionNeedsNoServer) {
  const Finished finished = RunToEnd({ProgramPath("croutctl"), "version"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.output, ::testing::StartsWith("croutctl 0.1."));
  EXPECT_EQ(RunJson({"version"})["version"].get<std::string>().substr(0, 4), "0.1.");
}

TEST_F(CroutctlTest, BadUsageExitsWith2) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"frobnicate"},
      {"factor"},
      {"factor", directory_.File("missing.mtx")},
      {"factor", matrix_, "--dtype=f16"},
      {"factor", matrix_, "--lease=soon"},
      {"factor", matrix_, "--lease=-1h"},
      {"factor", matrix_, "--lease=0"},
      {"renew", "h", "--lease=0s"},
      {"factor", matrix_, "--from=h", "--name=n"},
      {"factor", matrix_, "--replace-if-singular"},
      {"solve", "h"},
      {"solve", "h", matrix_, "--ones"},
      {"solve", "h", "--nrhs=2"},
      {"solve", "h", "--ones", "--refine=101"},
      {"solve", "h", "--ones", "--transpose", "--conjugate-transpose"},
      {"lu", matrix_, "--ones", "--name=n"},
      {"lu", "-", "-"},
      {"schur", matrix_},
      {"schur", matrix_, "--leading-order=-1"},
      {"rref", matrix_, "--augmented=-1"},
      {"rref", matrix_, "--tolerance=-1"},
      {"download", "h"},
      {"bench", "--concurrency=0"},
      {"renew"},
      {"release"},
      {"release", "h", "--all"},
      {"release", "h", "--yes"},
      {"list", "--show=everything"},
      {"list", "-q", "-v"},
      {"list", "--json", "--show=json"},
      {"help", "frobnicate"},
      {"factor", matrix_, "--factor-dtype=f32", "--precision=single"},
      {"solve", "h", matrix_, "--format=xml"},
      {"verify", matrix_, matrix_},
      {"verify", matrix_, "-", "-"},
      {"completion", "ksh"},
      {"man", "frobnicate"},
      {"top", "--once", "--interval=1ms"},
      {"list", "--tenant=two words"},
      {"list", "--priority=urgent"},
      {"--tenant=", "list"},
  };
  for (const auto& arguments : wrong) {
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, 2) << ::testing::PrintToString(arguments) << finished.errors;
    EXPECT_NE(finished.errors, "");
    EXPECT_EQ(finished.output, "");
  }
  EXPECT_THAT(daemon_.Ctl({"frobnicate", matrix_}).errors, ::testing::HasSubstr("frobnicate"));
  EXPECT_THAT(daemon_.Ctl({"--tenant=", "list"}).errors,
              ::testing::HasSubstr("--tenant= has no value"));
  EXPECT_EQ(daemon_.Ctl({"--help"}).exit_code, 0);
  EXPECT_EQ(daemon_.Ctl({"solve", "--help"}).exit_code, 0);
}

}  // namespace
}  // namespace crout::e2e::croutctl_usage_test
