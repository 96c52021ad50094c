// Files of every format, standard input and standard output.
#include "tests/e2e/croutctl.h"

namespace crout::e2e {
namespace {

TEST_F(CroutctlTest, SaysThatStandardOutputCannotBeWritten) {
  for (const char* to : {">/dev/full", ">&-"}) {
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"list", "--json"}, {"status"}, {"factor", matrix_}}) {
      const Finished finished = RunInShell(arguments, to);
      EXPECT_EQ(finished.exit_code, 19) << to;
      EXPECT_THAT(finished.errors, ::testing::HasSubstr("cannot write standard output")) << to;
    }
  }
}

TEST_F(CroutctlTest, StandardInputIsAMatrixToo) {
  const Finished finished = daemon_.Ctl({"factor", "-", "--json"}, matrix_);
  EXPECT_EQ(finished.exit_code, 0) << finished.errors;
  EXPECT_EQ(Json::parse(finished.output)["n"], 3);
}

// Each format is written, and read back as matrix and as right-hand side.
TEST_F(CroutctlTest, EveryFormatIsWrittenAndRead) {
  const std::string identity = directory_.File("identity.mtx");
  WriteFile(identity,
            "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2 1\n3 3 1\n");
  const std::vector<double> a = {2, 4, 0, 0, 5, 0, 1, 0, 8};
  const std::string whole = directory_.File("whole.mtx");
  for (const char* format : {"mtx", "npy", "npz", "txt", "csv"}) {
    const std::string file = directory_.File(std::string("a.") + format);
    RunJson({"lu", identity, matrix_, "-o", file});  // X is A
    RunJson({"lu", identity, file, "-o", whole});
    EXPECT_EQ(ArrayValues(whole), a) << format;
    const std::string x = directory_.File(std::string("x.") + format);
    EXPECT_LT(RunJson({"lu", file, "--ones", "-o", x})["backward_error"], 1e-15) << format;
    RunJson({"lu", identity, x, "-o", whole});
    EXPECT_THAT(ArrayValues(whole),
                ::testing::Pointwise(::testing::DoubleEq(), {0.4375, -0.15, 0.125}))
        << format;
    EXPECT_EQ(RunJson({"lu", file, "--ones", "--dtype=f32"})["factor"]["factor_dtype"], "f32");
  }
}

TEST_F(CroutctlTest, StandardInputIsOfAnyFormat) {
  const std::string identity = directory_.File("identity.txt");
  WriteFile(identity, "# a comment\n1 0 0\n0 1 0\n\n0 0 1\n");
  for (const char* format : {"mtx", "npy", "npz", "txt"}) {
    const std::string file = directory_.File(std::string("a.") + format);
    RunJson({"lu", identity, matrix_, "-o", file});
    for (const char* redirection : {"< ", "0< ", ""}) {
      const std::string from = *redirection != 0 ? redirection + file : "";
      // A file, and a pipe.
      std::vector<std::string> command = {
          "/bin/sh", "-c", from.empty() ? "cat " + file + " | \"$@\"" : "exec \"$@\" " + from,
          "sh"};
      for (const std::string& word : daemon_.CtlCommand({"factor", "-", "--json"})) {
        command.push_back(word);
      }
      const Finished finished = RunToEnd(command);
      EXPECT_EQ(finished.exit_code, 0) << format << finished.errors;
      EXPECT_EQ(Json::parse(finished.output, nullptr, false)["n"], 3) << format;
    }
  }
}

TEST_F(CroutctlTest, APipeThatGivesNothingHoldsUpNoDeadline) {
  const std::string start = directory_.File("start.npy");
  WriteFile(start, "\x93NUMPY");
  for (const std::string& said : {std::string("/dev/null"), start}) {
    // The pipe stays open for as long as the command runs.
    std::vector<std::string> command = {
        "/bin/sh", "-c",
        "mkfifo \"$0\" && { cat " + said +
            "; exec cat \"$0\"; } | { \"$@\"; s=$?; : >\"$0\"; exit $s; }",
        directory_.File("silent" + std::to_string(said.size()))};
    for (const std::string& word : daemon_.CtlCommand({"factor", "-", "--timeout=200ms"})) {
      command.push_back(word);
    }
    const Finished finished = RunToEnd(command);
    EXPECT_EQ(finished.exit_code, 16) << finished.errors;
    EXPECT_THAT(finished.errors, ::testing::HasSubstr("the input gave nothing more"));
  }
}

TEST_F(CroutctlTest, StandardOutputTakesTheMatrixAndStandardErrorTheReport) {
  const std::string b = directory_.File("b.txt");
  WriteFile(b, "3\n9\n8\n");  // A (1, 1, 1)
  const Finished mtx = daemon_.Ctl({"lu", matrix_, b, "-o", "-"});
  EXPECT_EQ(mtx.exit_code, 0);
  EXPECT_EQ(mtx.output, "%%MatrixMarket matrix array real general\n3 1\n1\n1\n1\n");
  EXPECT_THAT(mtx.errors, ::testing::HasSubstr("backward_error"));
  const std::string handle = Factor();
  const Finished text = daemon_.Ctl({"solve", handle, b, "-o", "-", "--format=txt", "--json"});
  EXPECT_EQ(text.output, "1\n1\n1\n");
  EXPECT_LT(Json::parse(text.errors)["backward_error"], 1e-15);
  EXPECT_EQ(daemon_.Ctl({"schur", matrix_, "--leading=2", "-o", "-", "--format=txt"}).output,
            "8\n");
  const Finished npy = daemon_.Ctl({"solve", handle, "--ones", "-o", "-", "--format=npy"});
  EXPECT_THAT(npy.output, ::testing::StartsWith("\x93NUMPY"));
  EXPECT_EQ(npy.output.size(), 128u + 24u);
  const Finished npz = daemon_.Ctl({"solve", handle, b, "-o", "-", "--format=npz"});
  EXPECT_EQ(npz.exit_code, 0) << npz.errors;
  const std::string archive = directory_.File("x.npz");
  WriteFile(archive, npz.output);
  EXPECT_EQ(daemon_.Ctl({"lu", matrix_, archive + ":x", "-o", "-", "--format=txt"}).exit_code, 0);
  const std::vector<std::string> to_full = {"solve", handle, "--ones", "-o", "-", "--format=npz"};
  EXPECT_EQ(RunInShell(to_full, ">/dev/full").exit_code, 19);
  const Finished full = RunInShell({"solve", handle, "--ones", "-o", "-"}, ">/dev/full");
  EXPECT_EQ(full.exit_code, 19);
}

TEST_F(CroutctlTest, FilesThatCannotBeWrittenAreNotNotFound) {
  const Finished finished = daemon_.Ctl({"lu", matrix_, "--ones", "-o", "/no/such/x.mtx"});
  EXPECT_EQ(finished.exit_code, 19);
  EXPECT_EQ(finished.errors,
            "croutctl: FILE: cannot write /no/such/x.mtx: No such file or directory\n");
}

TEST_F(CroutctlTest, ArraysOfAnArchiveHaveNames) {
  const std::string archive = directory_.File("a.npz");
  RunJson({"lu", matrix_, "--ones", "-o", archive});
  EXPECT_EQ(RunJson({"lu", matrix_, archive + ":x"})["nrhs"], 1);
  const Finished finished = daemon_.Ctl({"lu", matrix_, archive + ":b"});
  EXPECT_EQ(finished.exit_code, 12);
  EXPECT_THAT(finished.errors, ::testing::HasSubstr("a.npz:b: the archive has x, but no b"));
}

TEST_F(CroutctlTest, VerifyNeedsNoServer) {
  const std::string x = directory_.File("x.npy"), b = directory_.File("b.txt");
  WriteFile(b, "3\n9\n8\n");  // A (1, 1, 1)
  RunJson({"lu", matrix_, b, "-o", x});
  const auto verify = [&](const std::string& solution) {
    return RunToEnd({ProgramPath("croutctl"), "verify", matrix_, solution, b, "--json"});
  };
  const Json right = Json::parse(verify(x).output);
  EXPECT_EQ(right["n"], 3);
  EXPECT_LT(right["backward_error"], 1e-15);
  EXPECT_LT(right["componentwise_error"], 1e-15);
  const std::string wrong = directory_.File("wrong.txt");
  WriteFile(wrong, "1\n1\n2\n");
  // The residual is (-1, 0, -8), |A| 9, |x| 2, |b| 9.
  EXPECT_DOUBLE_EQ(Json::parse(verify(wrong).output)["backward_error"], 8.0 / 27);
  EXPECT_DOUBLE_EQ(Json::parse(verify(wrong).output)["componentwise_error"], 8.0 / 24);
  EXPECT_EQ(verify(matrix_).exit_code, 12);
}

}  // namespace
}  // namespace crout::e2e
