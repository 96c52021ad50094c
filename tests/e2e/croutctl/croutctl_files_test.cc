// SPDX-License-Identifier: Apache-2.0

// Tests croutctl with files of every format, standard input and standard output.
#include "absl/strings/str_cat.h"
#include "tests/e2e/croutctl/croutctl.h"

namespace crout::e2e::croutctl_files_test {
namespace {

TEST_F(CroutctlTest, ReportsThatStandardOutputCannotBeWritten) {
  for (const char* to : {">/dev/full", ">&-"}) {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"list", "--json"},
                                                      {"status", "--timeout=1m"},
                                                      {"factor", matrix_}}) {
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

// Writes each format and reads it back as a matrix and as a right-hand side.
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

TEST_F(CroutctlTest, ArchivesOfSparseMatricesAreRead) {
  const std::string x = directory_.File("x.mtx");
  for (const char* name : {"archive.npz", "archive_coo.npz", "archive_csc.npz"}) {
    const Json lu = RunJson({"lu", SparseArchive(name), "--ones", "-o", x});
    EXPECT_EQ(lu["factor"]["nnz"], 5) << name;
    EXPECT_THAT(ArrayValues(x),
                ::testing::Pointwise(::testing::DoubleNear(1e-15), {-1.0, 1.0 / 3, 1.0}));
    EXPECT_EQ(
        RunJson({"lu", SparseArchive(name), "--ones", "--dtype=f32"})["factor"]["factor_dtype"],
        "f32");
  }
  const Json batch = RunJson({"factor-batch", matrix_, SparseArchive("archive.npz")});
  EXPECT_EQ(batch["members"][1]["rows"], 3);
}

TEST_F(CroutctlTest, StandardInputIsOfAnyFormat) {
  const std::string identity = directory_.File("identity.txt");
  WriteFile(identity, "# a comment\n1 0 0\n0 1 0\n\n0 0 1\n");
  for (const char* format : {"mtx", "npy", "npz", "txt"}) {
    const std::string file = directory_.File(std::string("a.") + format);
    RunJson({"lu", identity, matrix_, "-o", file});
    for (const char* redirection : {"< ", "0< ", ""}) {
      const std::string from = *redirection != 0 ? redirection + file : "";
      // The input is a file, then a pipe.
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

// croutctl must send the size of the right-hand side before the matrix, but can read a pipe only
// once.
TEST_F(CroutctlTest, OnesAreForAMatrixOnStandardInputToo) {
  const std::string complex = directory_.File("complex.mtx"), text = directory_.File("a.txt");
  WriteFile(complex, "%%MatrixMarket matrix array complex general\n1 1\n0 2\n");
  WriteFile(text, "2\n");
  ASSERT_EQ(RunToEnd({"/bin/gzip", "-k", matrix_}).exit_code, 0);
  const auto ones = [&](const std::string& file) {
    const std::string x = directory_.File("x.mtx");
    const Finished finished = RunPiped(file, {"lu", "-", "--ones", "--json", "-o", x});
    EXPECT_EQ(finished.exit_code, 0) << file << finished.errors;
    return ReadFile(x);
  };
  for (const std::string& file : {matrix_, matrix_ + ".gz"}) {
    EXPECT_THAT(ones(file), ::testing::HasSubstr("real general\n3 1\n0.4375\n")) << file;
  }
  EXPECT_THAT(ones(complex), ::testing::EndsWith("complex general\n1 1\n0 -0.5\n"));
  EXPECT_THAT(ones(text), ::testing::EndsWith("1 1\n0.5\n"));
  WriteFile(text, "%%MatrixMarket matrix array real general\n");
  const Finished cut = RunPiped(text, {"lu", "-", "--ones"});
  EXPECT_EQ(cut.exit_code, 12);
  EXPECT_THAT(cut.errors, ::testing::HasSubstr("standard input has no Matrix Market size line"));
  WriteFile(text, "");  // simulates a failed download
  EXPECT_THAT(RunPiped(text, {"lu", "-", "--ones"}).errors,
              ::testing::HasSubstr("standard input is empty"));
}

TEST_F(CroutctlTest, AnEmptyPipeDoesNotDelayTheDeadline) {
  const std::string start = directory_.File("start.npy");
  WriteFile(start, "\x93NUMPY");
  for (const std::string& said : {std::string("/dev/null"), start}) {
    // The pipe is open as long as the command runs.
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
    EXPECT_THAT(finished.errors, ::testing::HasSubstr("the input sent nothing more"));
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
  EXPECT_EQ(daemon_.Ctl({"schur", matrix_, "--leading-order=2", "-o", "-", "--format=txt"}).output,
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

TEST_F(CroutctlTest, AMatrixWithoutAFileIsPrinted) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"rref", matrix_}, {"schur", matrix_, "--leading-order=2"}}) {
    std::vector<std::string> named = arguments;
    named.insert(named.end(), {"-o", "-"});
    const Finished printed = daemon_.Ctl(arguments);
    EXPECT_EQ(printed.exit_code, 0) << printed.errors;
    EXPECT_EQ(printed.output, daemon_.Ctl(named).output);
    EXPECT_THAT(printed.output, ::testing::StartsWith("%%MatrixMarket matrix array real"));
    EXPECT_THAT(printed.errors, ::testing::HasSubstr("on standard output\n"));
    EXPECT_TRUE(RunJson(arguments).is_object()) << "with --json no matrix is printed";
  }
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
  // The residual is (-1, 0, -8), and |A| = 9, |x| = 2, |b| = 9.
  EXPECT_DOUBLE_EQ(Json::parse(verify(wrong).output)["backward_error"], 8.0 / 27);
  EXPECT_DOUBLE_EQ(Json::parse(verify(wrong).output)["componentwise_error"], 8.0 / 24);
  EXPECT_EQ(verify(matrix_).exit_code, 12);
}

TEST_F(CroutctlTest, SparseMatricesAreFactoredAsSparse) {
  const Json factor = RunJson({"factor", matrix_, "--algorithm=multifrontal"});
  EXPECT_EQ(factor["algorithm"], "multifrontal");
  EXPECT_GT(factor["sparse"]["lu_entries"], 0);
  EXPECT_LT(RunJson({"solve", factor["handle"], "--ones"})["backward_error"], 1e-15);
}

TEST_F(CroutctlTest, AnalyzeNeedsNoServer) {
  // The matrix is an arrow: the diagonal, the last row and the last column.
  constexpr int kN = 50;
  std::string text = absl::StrCat("%%MatrixMarket matrix coordinate real symmetric\n", kN, " ", kN,
                                  " ", 2 * kN - 1, "\n");
  for (int i = 1; i <= kN; ++i) absl::StrAppend(&text, i, " ", i, " 60\n");
  for (int i = 1; i < kN; ++i) absl::StrAppend(&text, kN, " ", i, " -1\n");
  const std::string arrow = directory_.File("arrow.mtx");
  WriteFile(arrow, text);
  const auto analyze = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {ProgramPath("croutctl"), "analyze"});
    return RunToEnd(arguments);
  };
  const Finished finished = analyze({arrow, "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.errors;
  const Json json = Json::parse(finished.output);
  EXPECT_EQ(json["n"], kN);
  EXPECT_EQ(json["entries"], 3 * kN - 2);
  EXPECT_EQ(json["symmetric"], true);
  EXPECT_EQ(json["matched"], false);
  EXPECT_EQ(json["ordering"], "amd");
  EXPECT_GE(json["lu_entries"], json["entries"]);  // the only fill-in is zeros in merged fronts
  EXPECT_LT(json["lu_entries"], kN * kN / 2);
  EXPECT_GT(json["flops"], 0);
  EXPECT_GE(json["factor_bytes"], 8 * json["lu_entries"].get<int64_t>());
  EXPECT_EQ(json["by_level"].size(), json["levels"]);
  int64_t fronts = 0, eliminated = 0, entries = 0;
  for (const Json& level : json["by_level"]) {
    fronts += level["fronts"].get<int64_t>();
    eliminated += level["eliminated"].get<int64_t>();
    entries += level["lu_entries"].get<int64_t>();
  }
  EXPECT_EQ(fronts, json["fronts"]);
  EXPECT_EQ(eliminated, kN);
  EXPECT_EQ(entries, json["lu_entries"]);
  ASSERT_EQ(json["tree"].size(), json["fronts"]);  // the tree is printed to its full depth
  EXPECT_EQ(json["tree"][0]["parent"], -1);
  EXPECT_EQ(json["tree"][0]["subtree_fronts"], json["fronts"]);
  EXPECT_DOUBLE_EQ(json["tree"][0]["subtree_flops"], json["flops"]);
  // If the hub is eliminated first, the factors are full.
  const std::string hub_first = directory_.File("hub.mtx");
  WriteFile(hub_first,
            "%%MatrixMarket matrix coordinate real general\n4 4 10\n1 1 9\n2 2 9\n"
            "3 3 9\n4 4 9\n1 2 1\n1 3 1\n1 4 1\n2 1 1\n3 1 1\n4 1 1\n");
  EXPECT_EQ(Json::parse(analyze({hub_first, "--ordering=natural", "--json"}).output)["lu_entries"],
            16);
  const Finished text_report = analyze({arrow, "--depth=1", "-v"});
  EXPECT_THAT(text_report.output, ::testing::HasSubstr("largest_front"));
  EXPECT_THAT(text_report.output, ::testing::HasSubstr("100.0 %"));
  const std::string picture = directory_.File("arrow.svg");
  EXPECT_EQ(analyze({arrow, "--plot=" + picture}).exit_code, 0);
  EXPECT_THAT(ReadFile(picture), ::testing::StartsWith("<svg "));
  EXPECT_THAT(ReadFile(picture), ::testing::HasSubstr(">A: 50 x 50, 148 nonzeros<"));
  EXPECT_EQ(analyze({arrow, "--plot=" + directory_.File("none/arrow.svg")}).exit_code, 19);
  const Finished png = analyze({arrow, "--plot=" + directory_.File("arrow.png")});
  EXPECT_EQ(png.exit_code, 2);
  EXPECT_THAT(png.errors, ::testing::HasSubstr("does not end in .svg"));
  // The analysis cannot detect that this matrix is singular, because it is not structurally
  // singular.
  const std::string ones = directory_.File("ones.txt");
  WriteFile(ones, "1 1\n1 1\n");
  EXPECT_EQ(analyze({ones, "--matching=on"}).exit_code, 0);
  const std::string empty = directory_.File("empty.mtx");
  WriteFile(empty, "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n3 3 1\n");
  const Finished structurally = analyze({empty, "--json"});
  EXPECT_EQ(structurally.exit_code, 10);
  EXPECT_EQ(Json::parse(structurally.output)["structurally_singular_row"], 2);
  const std::string wide = directory_.File("wide.txt");
  WriteFile(wide, "1 2 3\n4 5 6\n");
  EXPECT_EQ(analyze({wide}).exit_code, 12);
  EXPECT_EQ(analyze({arrow, "--ordering=random"}).exit_code, 2);
}

}  // namespace
}  // namespace crout::e2e::croutctl_files_test
