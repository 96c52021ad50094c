// SPDX-License-Identifier: Apache-2.0

// Tests croutctl factor, refactor, solve and lu.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/e2e/croutctl/croutctl.h"

namespace crout::e2e::croutctl_solve_test {
namespace {

TEST_F(CroutctlTest, FactorThenSolveByHandle) {
  const Json factor = RunJson({"factor", matrix_, "--name=first", "--lease=10m", "--condition",
                               "--determinant", "--algorithm=getrf", "--device=host"});
  EXPECT_EQ(factor["algorithm"], "getrf");
  EXPECT_EQ(factor["n"], 3);
  EXPECT_EQ(factor["info"], 0);
  EXPECT_EQ(factor["nnz"], 5);
  EXPECT_EQ(factor["name"], "first");
  EXPECT_EQ(factor["factor_dtype"], "f64");
  EXPECT_NEAR(factor["determinant"]["sign"].get<double>(), 1, 0);
  EXPECT_GT(factor["rcond"], 0);
  EXPECT_TRUE(factor["timings"].is_object());

  const std::string x = directory_.File("x.mtx");
  const Json solved = RunJson({"solve", factor["handle"], "--ones", "-o", x});
  EXPECT_LT(solved["backward_error"], 1e-15);
  EXPECT_EQ(solved["nrhs"], 1);
  // The solution of A x = (1, 1, 1) has x3 = 1/8, x1 = 7/16, x2 = (1 - 4 x1) / 5.
  EXPECT_THAT(ArrayValues(x), ::testing::Pointwise(::testing::DoubleEq(), {0.4375, -0.15, 0.125}));

  WriteFile(directory_.File("b.mtx"),
            "%%MatrixMarket matrix array real general\n3 2\n2\n4\n0\n1\n0\n8\n");
  const Json refined =
      RunJson({"solve", factor["handle"], directory_.File("b.mtx"), "-o", x, "--refine=2",
               "--error-bound", "--refine-componentwise", "--solver=trsm"});
  EXPECT_LT(refined["componentwise_error"], 1e-15);
  EXPECT_EQ(refined["fallback"], "none");
  EXPECT_THAT(ArrayValues(x), ::testing::Pointwise(::testing::DoubleEq(), {1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(RunJson({"solve", factor["handle"], "--ones", "--nrhs=4", "--transpose", "--no-verify"})
                .contains("backward_error"),
            false);
  EXPECT_TRUE(RunJson({"solve", factor["handle"], "--ones", "--componentwise-error"})
                  .contains("componentwise_error"));
}

TEST_F(CroutctlTest, WarnsOfAPoorFactor) {
  const std::string poor = directory_.File("poor.mtx");
  WriteFile(poor, "%%MatrixMarket matrix array real general\n2 2\n1e-18\n1\n1\n3\n");
  const Finished warned =
      daemon_.Ctl({"factor", poor, "--algorithm=cm", "--equilibrate=off", "--json"});
  EXPECT_EQ(warned.exit_code, 0);
  EXPECT_THAT(warned.errors, ::testing::StartsWith("{\"warning\":\"the factor is poor"));
  const Json factor = Json::parse(warned.output);
  EXPECT_GT(factor["quality"], 30);
  EXPECT_EQ(Strings(factor["warnings"]), std::vector<std::string>{"poor_factor"});
  const Json fine = RunJson({"factor", poor, "--algorithm=cmpp"});
  EXPECT_LT(fine["quality"], 30);
  EXPECT_TRUE(fine["warnings"].empty());
  EXPECT_TRUE(daemon_.Logs({"poor_factor call="})) << daemon_.process().Errors();
}

// Exit code 22 means that the solution was written but is not accurate.
TEST_F(CroutctlTest, WarnsOfAnInaccurateSolution) {
  // The last column of U grows to 2^(k - 1) in row k.
  constexpr int kN = 60;
  std::string growing =
      absl::StrCat("%%MatrixMarket matrix array real general\n", kN, " ", kN, "\n");
  std::string side = absl::StrCat("%%MatrixMarket matrix array real general\n", kN, " 1\n");
  for (int j = 0; j < kN; ++j) {
    for (int i = 0; i < kN; ++i) {
      absl::StrAppend(&growing, j == kN - 1 || i == j ? 1 : i > j ? -1 : 0, "\n");
    }
    absl::StrAppend(&side, 1.0 / (1 + (j * 7) % 11), "\n");
  }
  const std::string a = directory_.File("growing.mtx");
  const std::string b = directory_.File("side.mtx");
  const std::string x = directory_.File("x.mtx");
  WriteFile(a, growing);
  WriteFile(b, side);
  const auto once = daemon_.Ctl({"lu", a, b, "-o", x});
  EXPECT_EQ(once.exit_code, 22) << once.errors;
  EXPECT_THAT(once.errors, ::testing::HasSubstr("warning: the solution is not accurate"));
  EXPECT_THAT(once.errors, ::testing::HasSubstr("warning: the factor is poor"));
  EXPECT_EQ(ArrayValues(x).size(), static_cast<size_t>(kN));
  EXPECT_EQ(daemon_.Ctl({"factor", a, "--name=growing"}).exit_code, 0);
  EXPECT_EQ(daemon_.Ctl({"solve", "growing", b}).exit_code, 22);
  const auto unmeasured = daemon_.Ctl({"solve", "growing", b, "--no-verify"});
  EXPECT_EQ(unmeasured.exit_code, 0);
  EXPECT_THAT(unmeasured.errors, ::testing::HasSubstr("the backward error was not measured"));
  EXPECT_EQ(daemon_.Ctl({"factor-batch", a, "--name=growing-batch"}).exit_code, 0);
  const auto fine = daemon_.Ctl({"lu", matrix_, "--ones"});
  EXPECT_EQ(fine.exit_code, 0);
  EXPECT_THAT(fine.errors, ::testing::Not(::testing::HasSubstr("warning")));
}

TEST_F(CroutctlTest, LuFactorsAndSolvesInOneGo) {
  const std::string x = directory_.File("x.mtx");
  const Json solved = RunJson({"lu", matrix_, "--ones", "-o", x});
  EXPECT_LT(solved["backward_error"], 1e-15);
  EXPECT_EQ(solved["factor"]["handle"], "");
  EXPECT_EQ(ArrayValues(x).size(), 3u);
  const Json kept = RunJson({"lu", matrix_, "--ones", "--keep", "--name=k", "--dtype=f32"});
  EXPECT_EQ(kept["factor"]["factor_dtype"], "f32");
  EXPECT_EQ(RunJson({"describe", kept["factor"]["handle"]})["name"], "k");
}

// The client allocates no memory for ones, whatever size a file or an option declares. The server
// refuses sizes beyond its limits.
TEST_F(CroutctlTest, OnesUseNoMemory) {
  const std::string huge = directory_.File("huge.mtx");
  WriteFile(huge,
            "%%MatrixMarket matrix coordinate real general\n"
            "9000000000000000000 9000000000000000000 0\n");
  const std::string handle = Factor();
  const std::vector<std::vector<std::string>> refused = {
      {"lu", huge, "--ones", "--nrhs=16777216"},
      {"lu", huge, "--ones"},
      {"lu", matrix_, "--ones", "--nrhs=16777216"},
      {"solve", handle, "--ones", "--nrhs=16777216"},
  };
  for (const auto& arguments : refused) {
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, 12) << finished.errors;
    EXPECT_THAT(finished.errors, ::testing::StartsWith("croutctl: INVALID_ARGUMENT: "));
  }
  const std::string x = directory_.File("x.mtx");
  RunJson({"solve", handle, "--ones", "--nrhs=100000", "-o", x});
  const std::vector<double> values = ArrayValues(x);
  ASSERT_EQ(values.size(), 300'000u);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_DOUBLE_EQ(values[i], values[i % 3]) << i;
  EXPECT_DOUBLE_EQ(values[0], 0.4375);
}

TEST_F(CroutctlTest, OnesHaveTheRequestedType) {
  const std::string three = directory_.File("three.mtx");
  const std::string x = directory_.File("x.mtx");
  WriteFile(three, "%%MatrixMarket matrix array real general\n1 1\n3\n");
  const std::string handle = RunJson({"factor", three})["handle"];
  RunJson({"solve", handle, "--ones", "--dtype=f32", "-o", x});
  EXPECT_THAT(ReadFile(x), ::testing::EndsWith("\n0.33333334\n"));
  RunJson({"solve", handle, "--ones", "-o", x});
  EXPECT_THAT(ReadFile(x), ::testing::EndsWith("\n0.3333333333333333\n"));
}

TEST_F(CroutctlTest, GaussJordanSolvesWithoutFactors) {
  const std::string x = directory_.File("x.mtx");
  const Json solved = RunJson({"lu", matrix_, "--ones", "--algorithm=gauss_jordan", "-o", x});
  EXPECT_EQ(solved["factor"]["algorithm"], "gauss_jordan");
  EXPECT_LT(solved["backward_error"], 1e-15);
  EXPECT_THAT(ArrayValues(x),
              ::testing::Pointwise(::testing::DoubleNear(1e-15), {0.4375, -0.15, 0.125}));
}

// The server passes on the name of the method, its parameters and its iteration report.
TEST_F(CroutctlTest, IterativeMethodsReportTheirWorkAndStartFromTheReplacedFactor) {
  const Json cold = RunJson({"factor", matrix_, "--algorithm=icmpp", "--section-size=32"});
  EXPECT_EQ(cold["iterations"]["warm"], false);
  EXPECT_EQ(cold["iterations"]["sections"], 1);
  EXPECT_GT(cold["iterations"]["total_sweeps"], 1);
  EXPECT_EQ(cold["iterations"]["sweeps"][0], cold["iterations"]["total_sweeps"]);
  const Json warm = RunJson({"factor", matrix_, "--from", cold["handle"], "--algorithm=icmpp",
                             "--tolerance=1e-10", "--pivot-rule=threshold"});
  EXPECT_EQ(warm["handle"], cold["handle"]);
  EXPECT_EQ(warm["iterations"]["warm"], true);
  EXPECT_LE(warm["iterations"]["total_sweeps"], cold["iterations"]["total_sweeps"]);
  const Json record = RunJson({"iterations", warm["handle"]});
  EXPECT_EQ(record["version"], 2);
  EXPECT_EQ(record["sweeps"], warm["iterations"]["sweeps"]);
  EXPECT_EQ(record["pivots"], warm["iterations"]["pivots"]);
  const Json solved = RunJson({"solve", warm["handle"], "--ones"});
  EXPECT_LT(solved["backward_error"], 1e-9);
}

TEST_F(CroutctlTest, SingularMatricesWarnAndFailOnRequest) {
  const std::string handle = Factor();
  const auto expect = [&](std::vector<std::string> arguments, int exit_code,
                          const std::string& errors) {
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, exit_code) << ::testing::PrintToString(arguments);
    EXPECT_THAT(finished.errors, ::testing::HasSubstr(errors));
    return finished.output;
  };
  const std::string warning = "croutctl: warning: the factor is singular";
  EXPECT_EQ(Json::parse(
                expect({"--json", "factor", singular_}, 0, "{\"warning\":\"the factor is"))["info"],
            2);
  EXPECT_NE(expect({"factor", singular_, "--fail-singular"}, 10, warning), "");
  EXPECT_EQ(daemon_.Ctl({"factor", matrix_, "--fail-singular"}).exit_code, 0);
  WriteFile(directory_.File("singular3.mtx"),
            "%%MatrixMarket matrix array real general\n3 3\n1\n1\n1\n1\n1\n1\n1\n1\n1\n");
  const std::string singular = directory_.File("singular3.mtx");
  const std::string kept = "keeps version 1";
  EXPECT_EQ(expect({"refactor", handle, singular}, 13, kept), "");
  EXPECT_EQ(expect({"refactor", handle, singular, "--fail-singular"}, 10, kept), "");
  EXPECT_EQ(expect({"factor", singular, "--from", handle}, 13, kept), "");
  EXPECT_EQ(RunJson({"describe", handle})["version"], 1);
  expect({"refactor", handle, singular, "--replace-if-singular"}, 0, warning);
  EXPECT_EQ(RunJson({"describe", handle})["version"], 2);
}

// The first matrix is (3 -1 0; -1 4 -1; 0 -1 5), with one entry split over two lines. The next is
// (6 -2 0; 0 8 -2; 0 -2 10), with its lines in another order and one zero as an entry.
TEST_F(CroutctlTest, RefactorsByValuesAlone) {
  const std::string a = directory_.File("tridiagonal.mtx"), next = directory_.File("next.mtx.gz");
  WriteFile(a,
            "%%MatrixMarket matrix coordinate real symmetric\n3 3 6\n1 1 1\n1 1 2\n2 1 -1\n2 2 4\n"
            "3 2 -1\n3 3 5\n");
  const std::string plain = directory_.File("next.mtx");
  WriteFile(plain,
            "%%MatrixMarket matrix coordinate real general\n3 3 7\n3 3 10\n2 3 -2\n1 1 6\n"
            "2 1 0\n3 2 -2\n2 2 8\n1 2 -2\n");
  ASSERT_EQ(RunToEnd({"/bin/gzip", "-k", plain}).exit_code, 0);
  const std::vector<std::string> by_fronts = {"factor", a, "--algorithm=multifrontal"};
  const std::string handle = RunJson(by_fronts)["handle"];
  const Json factor = RunJson({"refactor", handle, next, "--values-only"});
  EXPECT_EQ(factor["version"], 2);
  EXPECT_EQ(factor["nnz"], 7);
  EXPECT_EQ(factor["sparse"]["analysis_reused"], true);
  const std::string b = directory_.File("b.txt"), x = directory_.File("x.mtx");
  WriteFile(b, "4\n6\n8\n");
  RunJson({"solve", handle, b, "-o", x});
  EXPECT_THAT(ArrayValues(x), ::testing::Pointwise(::testing::DoubleNear(1e-15), {1., 1., 1.}));
  // The values get the element type of the factor, not of the file.
  std::vector<std::string> single = by_fronts;
  single.push_back("--dtype=c64");
  const std::string complex = RunJson(single)["handle"];
  EXPECT_EQ(RunJson({"refactor", complex, plain, "--values-only"})["matrix_dtype"], "c64");
  RunJson({"solve", complex, b, "-o", x});

  const auto refused = [&](const std::string& path, int exit_code, const char* why) {
    const Finished finished = daemon_.Ctl({"refactor", handle, path, "--values-only"});
    EXPECT_EQ(finished.exit_code, exit_code) << finished.errors;
    EXPECT_THAT(finished.errors, ::testing::HasSubstr(why));
  };
  refused(matrix_, 13, "positions");
  refused(b, 12, "in coordinate format");
  const std::string other = directory_.File("other.mtx");
  WriteFile(other, "%%MatrixMarket matrix coordinate complex general\n3 3 1\n1 1 1 2\n");
  refused(other, 12, "the file is complex, the factor's matrix is real");
  WriteFile(other, "%%MatrixMarket matrix coordinate real general\n3 2 1\n1 1 1\n");
  refused(other, 12, "Only square matrices");
  WriteFile(other,  // (1, 3) in place of (2, 3)
            "%%MatrixMarket matrix coordinate real general\n3 3 7\n3 3 10\n1 3 -2\n1 1 6\n"
            "2 1 -2\n3 2 -2\n2 2 8\n1 2 -2\n");
  refused(other, 13, "another pattern");
  EXPECT_EQ(daemon_.Ctl({"refactor", handle, a, "--values-only", "--dtype=f32"}).exit_code, 2);
  EXPECT_EQ(RunJson({"describe", handle})["version"], 2);
}

TEST_F(CroutctlTest, FailedCallsNameTheFactorThatTheyKept) {
  const std::vector<std::pair<std::vector<std::string>, int>> failing = {
      {{"lu", singular_, "--ones", "--keep"}, 13},
      {{"lu", matrix_, "--ones", "--keep", "-o", "/dev/full"}, 19},
      {{"schur", singular_, "--leading-order=2"}, 13},
      {{"schur", matrix_, "--leading-order=2", "-o", "/no/such/directory/s.mtx"}, 19},
  };
  for (const auto& [arguments, exit_code] : failing) {
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, exit_code) << finished.errors;
    const std::string handle = RunJson({"list"})["factors"][0]["handle"];
    EXPECT_THAT(finished.errors,
                ::testing::HasSubstr("croutctl: warning: the factor is kept: " + handle + "\n"));
    RunJson({"release", handle});
  }
  EXPECT_THAT(daemon_.Ctl({"lu", singular_, "--ones"}).errors,
              ::testing::Not(::testing::HasSubstr("kept")));
}

}  // namespace
}  // namespace crout::e2e::croutctl_solve_test
