// croutctl against the real daemon: what it prints, writes and exits with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <complex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "crout/matrix_sink.h"
#include "tests/e2e/daemon.h"

namespace crout::e2e {
namespace {

using Json = nlohmann::json;

constexpr char kMatrix[] =
    "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 2\n2 1 4\n2 2 5\n1 3 1\n3 3 8\n";
constexpr char kSingular[] = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 3\n";

// The numbers of a Matrix Market array file after its size line.
std::vector<double> ArrayValues(const std::string& path) {
  std::istringstream text(ReadFile(path));
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line.substr(0, 28), "%%MatrixMarket matrix array ") << path;
  std::getline(text, line);
  std::vector<double> values;
  for (double value; text >> value;) values.push_back(value);
  return values;
}

// GoogleMock cannot print arrays of nlohmann's: their elements are arrays to it.
std::vector<std::string> Strings(const Json& array) { return array; }

class CroutctlTest : public ::testing::Test {
 protected:
  CroutctlTest() {
    WriteFile(matrix_, kMatrix);
    WriteFile(singular_, kSingular);
  }

  // Runs with --json; the command must succeed and print one object and nothing else.
  Json RunJson(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    EXPECT_EQ(finished.errors, "");
    const Json json = Json::parse(finished.output, nullptr, false);
    EXPECT_TRUE(json.is_object()) << finished.output;
    return json;
  }

  Finished RunInShell(const std::vector<std::string>& arguments, const std::string& redirections) {
    std::vector<std::string> command = {"/bin/sh", "-c", "exec \"$@\" " + redirections, "sh"};
    for (const std::string& word : daemon_.CtlCommand(arguments)) command.push_back(word);
    return RunToEnd(command);
  }

  std::string Factor() { return RunJson({"factor", matrix_})["handle"]; }

  Daemon daemon_;
  TempDir directory_;
  const std::string matrix_ = directory_.File("a.mtx");
  const std::string singular_ = directory_.File("singular.mtx");
};

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
  // A x = 1: x3 = 1/8, x1 = 7/16, x2 = (1 - 4 x1) / 5.
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
  const Json factor = RunJson({"factor", poor, "--algorithm=cm", "--equilibrate=off"});
  EXPECT_GT(factor["quality"], 30);
  EXPECT_EQ(Strings(factor["warnings"]), std::vector<std::string>{"poor_factor"});
  const Json fine = RunJson({"factor", poor, "--algorithm=cmpp"});
  EXPECT_LT(fine["quality"], 30);
  EXPECT_TRUE(fine["warnings"].empty());
  EXPECT_THAT(daemon_.process().Errors(), ::testing::HasSubstr("poor_factor call="));
}

TEST_F(CroutctlTest, LuFactorsAndSolvesInOneGo) {
  const std::string x = directory_.File("x.mtx");
  const Json solved = RunJson({"lu", matrix_, "--ones", "-o", x});
  EXPECT_LT(solved["backward_error"], 1e-15);
  EXPECT_EQ(solved["factor"]["handle"], "");
  EXPECT_EQ(ArrayValues(x).size(), 3u);
  const Json kept = RunJson({"lu", matrix_, "--ones", "--keep", "--name=k", "--dtype=f32"});
  EXPECT_EQ(kept["factor"]["factor_dtype"], "f32");
  EXPECT_EQ(RunJson({"info", kept["factor"]["handle"]})["name"], "k");
}

// Whatever a file or an option says, the server's limits answer, not the client's memory.
TEST_F(CroutctlTest, OnesTakeNoMemory) {
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
    EXPECT_EQ(finished.exit_code, 1) << finished.errors;
    EXPECT_THAT(finished.errors, ::testing::StartsWith("croutctl: INVALID_ARGUMENT: "));
  }
  const std::string x = directory_.File("x.mtx");
  RunJson({"solve", handle, "--ones", "--nrhs=100000", "-o", x});
  const std::vector<double> values = ArrayValues(x);
  ASSERT_EQ(values.size(), 300'000u);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_DOUBLE_EQ(values[i], values[i % 3]) << i;
  EXPECT_DOUBLE_EQ(values[0], 0.4375);
}

TEST_F(CroutctlTest, OnesAreOfTheTypeThatIsAskedFor) {
  const std::string three = directory_.File("three.mtx");
  const std::string x = directory_.File("x.mtx");
  WriteFile(three, "%%MatrixMarket matrix array real general\n1 1\n3\n");
  const std::string handle = RunJson({"factor", three})["handle"];
  RunJson({"solve", handle, "--ones", "--dtype=f32", "-o", x});
  EXPECT_THAT(ReadFile(x), ::testing::EndsWith("\n0.33333334\n"));
  RunJson({"solve", handle, "--ones", "-o", x});
  EXPECT_THAT(ReadFile(x), ::testing::EndsWith("\n0.3333333333333333\n"));
}

TEST_F(CroutctlTest, SaysThatStandardOutputCannotBeWritten) {
  for (const char* to : {">/dev/full", ">&-"}) {
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"list", "--json"}, {"status"}, {"factor", matrix_}}) {
      const Finished finished = RunInShell(arguments, to);
      EXPECT_EQ(finished.exit_code, 1) << to;
      EXPECT_EQ(finished.errors, "croutctl: cannot write standard output\n") << to;
    }
  }
}

TEST_F(CroutctlTest, FailedCallsNameTheFactorThatTheyKept) {
  const std::vector<std::vector<std::string>> failing = {
      {"lu", singular_, "--ones", "--keep"},
      {"lu", matrix_, "--ones", "--keep", "-o", "/dev/full"},
      {"schur", singular_, "--leading=2"},
      {"schur", matrix_, "--leading=2", "-o", "/no/such/directory/s.mtx"},
  };
  for (const auto& arguments : failing) {
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, 1);
    const std::string handle = RunJson({"list"})["factors"][0]["handle"];
    EXPECT_THAT(finished.errors,
                ::testing::HasSubstr("croutctl: warning: the factor is kept: " + handle + "\n"));
    RunJson({"release", handle});
  }
  EXPECT_THAT(daemon_.Ctl({"lu", singular_, "--ones"}).errors,
              ::testing::Not(::testing::HasSubstr("kept")));
}

TEST_F(CroutctlTest, GaussJordanSolvesWithoutFactors) {
  const std::string x = directory_.File("x.mtx");
  const Json solved = RunJson({"lu", matrix_, "--ones", "--algorithm=gauss_jordan", "-o", x});
  EXPECT_EQ(solved["factor"]["algorithm"], "gauss_jordan");
  EXPECT_LT(solved["backward_error"], 1e-15);
  EXPECT_THAT(ArrayValues(x),
              ::testing::Pointwise(::testing::DoubleNear(1e-15), {0.4375, -0.15, 0.125}));
}

// A method's name, its parameters and what it tells, by way of the wire.
TEST_F(CroutctlTest, IterativeMethodsTellWhatTheyDidAndStartFromTheFactorThatTheyReplace) {
  const Json cold = RunJson({"factor", matrix_, "--algorithm=icmpp", "--section-size=32"});
  EXPECT_EQ(cold["iterations"]["warm"], false);
  EXPECT_EQ(cold["iterations"]["sections"], 1);
  EXPECT_GT(cold["iterations"]["total_sweeps"], 1);
  EXPECT_EQ(cold["iterations"]["sweeps"][0], cold["iterations"]["total_sweeps"]);
  const Json warm = RunJson({"factor", matrix_, "--from", cold["handle"], "--algorithm=icmpp",
                             "--tolerance=1e-10", "--pivoting=threshold"});
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

TEST_F(CroutctlTest, SchurWritesTheComplementAndKeepsTheFactor) {
  const std::string s = directory_.File("s.mtx");
  const Json schur = RunJson({"schur", matrix_, "--leading=1", "-o", s, "--name=a11",
                              "--algorithm=cmpp", "--solver=trsm"});
  // [5 0; 0 8] - [4; 0] [0 1] / 2.
  EXPECT_THAT(ArrayValues(s), ::testing::Pointwise(::testing::DoubleEq(), {5, 0, -2, 8}));
  EXPECT_EQ(schur["solver"], "trsm");
  EXPECT_EQ(schur["device"], "host");
  EXPECT_LT(schur["backward_error"], 1e-15);
  EXPECT_EQ(schur["growth"], 1);
  EXPECT_TRUE(schur["timings"].is_object());
  EXPECT_EQ(schur["factor"]["n"], 1);
  EXPECT_EQ(schur["factor"]["algorithm"], "cmpp");
  EXPECT_EQ(RunJson({"info", schur["factor"]["handle"]})["name"], "a11");
  EXPECT_LT(RunJson({"solve", schur["factor"]["handle"], "--ones"})["backward_error"], 1e-15);
  RunJson({"schur", matrix_, "--leading=3"});
}

TEST_F(CroutctlTest, GetWritesFactorsThatMultiplyBack) {
  for (const char* algorithm : {"getrf", "cmpp"}) {
    const std::string handle =
        RunJson({"factor", matrix_, std::string("--algorithm=") + algorithm})["handle"];
    const std::string prefix = directory_.File(algorithm);
    const Json written = RunJson({"get", handle, "-o", prefix});
    EXPECT_THAT(Strings(written["files"]),
                ::testing::ElementsAre(prefix + "_L.mtx", prefix + "_U.mtx", prefix + "_p.mtx"));
    const auto l = ArrayValues(prefix + "_L.mtx");
    const auto u = ArrayValues(prefix + "_U.mtx");
    const auto p = ArrayValues(prefix + "_p.mtx");
    ASSERT_EQ(l.size(), 9u);
    ASSERT_EQ(u.size(), 9u);
    ASSERT_EQ(p.size(), 3u);
    const std::vector<double> a = {2, 4, 0, 0, 5, 0, 1, 0, 8};  // column-major
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) {
        double sum = 0;
        for (size_t k = 0; k < 3; ++k) sum += l[i + 3 * k] * u[k + 3 * j];
        EXPECT_NEAR(sum, a[static_cast<size_t>(p[i]) - 1 + 3 * j], 1e-14) << algorithm;
      }
      EXPECT_EQ(algorithm == std::string("getrf") ? l[4 * i] : u[4 * i], 1);
    }
  }
}

// [2, 1-i; 1+i, 3], whose inverse is [3, -1+i; -1-i, 2] / 4.
constexpr char kHermitian[] =
    "%%MatrixMarket matrix coordinate complex hermitian\n2 2 3\n1 1 2 0\n2 1 1 1\n2 2 3 0\n";

TEST_F(CroutctlTest, ComplexFilesAreComplexMatrices) {
  const std::string hermitian = directory_.File("hermitian.mtx");
  const std::string x = directory_.File("x.mtx");
  WriteFile(hermitian, kHermitian);
  const Json factor = RunJson({"factor", hermitian, "--condition"});
  EXPECT_EQ(factor["matrix_dtype"], "c128");
  EXPECT_EQ(factor["factor_dtype"], "c128");
  EXPECT_EQ(factor["nnz"], 4);
  const std::string handle = factor["handle"];
  const auto near = [](std::vector<double> values) {
    return ::testing::Pointwise(::testing::DoubleNear(1e-15), values);
  };

  EXPECT_LT(RunJson({"solve", handle, "--ones", "-o", x})["backward_error"], 1e-15);
  EXPECT_THAT(ReadFile(x), ::testing::StartsWith("%%MatrixMarket matrix array complex general\n"));
  EXPECT_THAT(ArrayValues(x), near({0.5, 0.25, 0.25, -0.25}));
  RunJson({"solve", handle, "--ones", "--conjugate-transpose", "-o", x});
  EXPECT_THAT(ArrayValues(x), near({0.5, 0.25, 0.25, -0.25}));
  RunJson({"solve", handle, "--ones", "--transpose", "-o", x});
  EXPECT_THAT(ArrayValues(x), near({0.5, -0.25, 0.25, 0.25}));

  // Right-hand sides: complex and real files, and what croutctl wrote itself.
  const std::string b = directory_.File("b.mtx");
  WriteFile(b, "%%MatrixMarket matrix array complex general\n2 1\n3 -1\n4 1\n");  // A [1; 1]
  RunJson({"solve", handle, b, "-o", x});
  EXPECT_THAT(ArrayValues(x), near({1, 0, 1, 0}));
  const std::string y = directory_.File("y.mtx");
  RunJson({"lu", hermitian, x, "-o", y});
  EXPECT_THAT(ArrayValues(y), near({0.5, 0.25, 0.25, -0.25}));
  const std::string real = directory_.File("real.mtx");
  WriteFile(real, "%%MatrixMarket matrix array real general\n2 1\n1\n1\n");
  RunJson({"lu", hermitian, real, "-o", y});
  EXPECT_THAT(ArrayValues(y), near({0.5, 0.25, 0.25, -0.25}));
  EXPECT_EQ(RunJson({"lu", hermitian, "--ones", "--dtype=c64"})["factor"]["factor_dtype"], "c64");
}

TEST_F(CroutctlTest, ARealFactorSolvesForComplexFilesAndComplexOnes) {
  const std::string two = directory_.File("two.mtx");
  const std::string b = directory_.File("b.mtx");
  const std::string x = directory_.File("x.mtx");
  WriteFile(two, "%%MatrixMarket matrix array real general\n1 1\n2\n");
  WriteFile(b, "%%MatrixMarket matrix array complex general\n1 1\n3 -1\n");
  const std::string handle = RunJson({"factor", two})["handle"];
  RunJson({"solve", handle, b, "-o", x});
  EXPECT_EQ(ReadFile(x), "%%MatrixMarket matrix array complex general\n1 1\n1.5 -0.5\n");
  RunJson({"solve", handle, "--ones", "--nrhs=2", "--dtype=c64", "-o", x});
  EXPECT_EQ(ReadFile(x), "%%MatrixMarket matrix array complex general\n1 2\n0.5 0\n0.5 0\n");
}

TEST_F(CroutctlTest, ComplexDeterminantsAndFactorsAreWritten) {
  const std::string matrix = directory_.File("c.mtx");
  WriteFile(matrix,
            "%%MatrixMarket matrix coordinate complex general\n"
            "2 2 3\n1 1 0 1\n2 1 1 1\n2 2 2 0\n");  // its determinant is 2i
  const Json factor = RunJson({"factor", matrix, "--determinant", "--algorithm=getrf"});
  EXPECT_NEAR(factor["determinant"]["sign"].get<double>(), 0, 1e-15);
  EXPECT_NEAR(factor["determinant"]["sign_imaginary"].get<double>(), 1, 1e-15);
  EXPECT_NEAR(factor["determinant"]["log_abs"].get<double>(), std::log(2), 1e-15);

  const std::string prefix = directory_.File("c");
  RunJson({"get", factor["handle"], "-o", prefix});
  using Complex = std::complex<double>;
  std::vector<Complex> parts[2];
  for (const auto& [name, values] : {std::pair("_L.mtx", &parts[0]), {"_U.mtx", &parts[1]}}) {
    const std::vector<double> numbers = ArrayValues(prefix + name);
    ASSERT_EQ(numbers.size(), 8u);
    for (size_t i = 0; i < 8; i += 2) values->emplace_back(numbers[i], numbers[i + 1]);
  }
  const auto p = ArrayValues(prefix + "_p.mtx");
  ASSERT_EQ(p.size(), 2u);
  const std::vector<Complex> a = {{0, 1}, {1, 1}, 0, 2};  // column-major
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      const Complex sum = parts[0][i] * parts[1][2 * j] + parts[0][i + 2] * parts[1][2 * j + 1];
      EXPECT_NEAR(std::abs(sum - a[static_cast<size_t>(p[i]) - 1 + 2 * j]), 0, 1e-15);
    }
    EXPECT_EQ(parts[0][3 * i], 1.0);
  }
}

TEST_F(CroutctlTest, AComplexFileAskedForInARealTypeIsRefused) {
  const std::string hermitian = directory_.File("hermitian.mtx");
  WriteFile(hermitian, kHermitian);
  const Finished finished = daemon_.Ctl({"factor", hermitian, "--dtype=f64"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.errors, ::testing::HasSubstr("line 1: the matrix is complex: ask for"));
  const Finished piped = RunInShell({"factor", "-"}, "<" + hermitian);
  EXPECT_EQ(piped.exit_code, 0) << piped.errors;  // A file, though on standard input.
}

TEST_F(CroutctlTest, ListInfoRenewReleaseRefactor) {
  const std::string handle = Factor();
  EXPECT_EQ(RunJson({"list"})["factors"].size(), 1u);
  EXPECT_EQ(RunJson({"list", "--name=nobody"})["factors"].size(), 0u);
  EXPECT_EQ(RunJson({"list", "--tenant=other"})["factors"].size(), 0u);
  EXPECT_EQ(RunJson({"info", handle})["handle"], handle);
  EXPECT_THAT(RunJson({"renew", handle, "--lease=2h"})["lease_expire_time"].get<std::string>(),
              ::testing::MatchesRegex("20..-..-..T..:..:...*Z"));
  EXPECT_EQ(RunJson({"refactor", handle, matrix_})["version"], 2);
  EXPECT_EQ(RunJson({"factor", matrix_, "--from=" + handle})["version"], 3);
  EXPECT_EQ(RunJson({"solve", handle, "--ones"})["factor_version"], 3);
  EXPECT_EQ(RunJson({"release", handle})["released"], true);
  EXPECT_EQ(RunJson({"list"})["factors"].size(), 0u);
}

TEST_F(CroutctlTest, ServerCommands) {
  const Json algorithms = RunJson({"algorithms"});
  EXPECT_EQ(algorithms["devices"][0]["name"], "host");
  EXPECT_THAT(Strings(algorithms["devices"][0]["algorithms"]),
              ::testing::IsSupersetOf({"getrf", "cmpp"}));
  EXPECT_GT(RunJson({"devices"})["devices"][0]["budget_bytes"], 0);
  EXPECT_EQ(RunJson({"status"})["draining"], false);
  EXPECT_GE(RunJson({"estimate", "1000", "--dtype=f32"})["peak_bytes"], 4'000'000);
  EXPECT_LT(RunJson({"estimate", "1000", "--nnz=5000"})["cached_bytes"], 9'000'000);
}

TEST_F(CroutctlTest, BenchReportsPercentiles) {
  for (const char* mode : {"solve", "factor", "mixed"}) {
    const Json bench = RunJson(
        {"bench", std::string("--mode=") + mode, "--n=32", "--concurrency=1,3", "--requests=40"});
    const bool mixed = mode == std::string("mixed");
    EXPECT_EQ(bench["results"].size(), mixed ? 4u : 2u) << bench;
    for (const Json& row : bench["results"]) {
      EXPECT_EQ(row["errors"], 0);
      EXPECT_GT(row["p50_seconds"], 0);
      EXPECT_GE(row["p99_seconds"], row["p50_seconds"]);
      EXPECT_GE(row["max_seconds"], row["p99_seconds"]);
      EXPECT_GT(row["per_second"], 0);
    }
  }
  for (const char* dtype : {"f32", "c64", "c128"}) {
    const Json bench = RunJson({"bench", std::string("--dtype=") + dtype, "--n=8", "--requests=3"});
    EXPECT_EQ(bench["dtype"], dtype);
    EXPECT_EQ(bench["results"][0]["errors"], 0);
  }
  EXPECT_EQ(HoldingsOf(*daemon_.NewClient()).cached_factors, 0);
}

TEST_F(CroutctlTest, PeopleGetTextWithTheSameFacts) {
  const std::string handle = Factor();
  const Finished info = daemon_.Ctl({"info", handle});
  EXPECT_EQ(info.exit_code, 0);
  EXPECT_THAT(info.output, ::testing::ContainsRegex("handle +" + handle));
  EXPECT_THAT(info.output, ::testing::ContainsRegex("factor_dtype +f64"));
  EXPECT_THAT(daemon_.Ctl({"list"}).output, ::testing::HasSubstr(handle));
  EXPECT_THAT(daemon_.Ctl({"status"}).output, ::testing::HasSubstr("cached_factors"));
}

TEST_F(CroutctlTest, StandardInputIsAMatrixToo) {
  const Finished finished = daemon_.Ctl({"factor", "-", "--json"}, matrix_);
  EXPECT_EQ(finished.exit_code, 0) << finished.errors;
  EXPECT_EQ(Json::parse(finished.output)["n"], 3);
}

TEST_F(CroutctlTest, SingularMatricesWarnAndFailWhereAsked) {
  const std::string handle = Factor();
  const auto expect = [&](std::vector<std::string> arguments, int exit_code,
                          const std::string& errors) {
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, exit_code) << ::testing::PrintToString(arguments);
    EXPECT_THAT(finished.errors, ::testing::HasSubstr(errors));
    return finished.output;
  };
  const std::string warning = "croutctl: warning: the factor is singular";
  EXPECT_EQ(Json::parse(expect({"--json", "factor", singular_}, 0, warning))["info"], 2);
  EXPECT_NE(expect({"factor", singular_, "--fail-singular"}, 10, warning), "");
  EXPECT_EQ(daemon_.Ctl({"factor", matrix_, "--fail-singular"}).exit_code, 0);
  WriteFile(directory_.File("singular3.mtx"),
            "%%MatrixMarket matrix array real general\n3 3\n1\n1\n1\n1\n1\n1\n1\n1\n1\n");
  const std::string singular = directory_.File("singular3.mtx");
  const std::string kept = "keeps version 1";
  EXPECT_EQ(expect({"refactor", handle, singular}, 1, kept), "");
  EXPECT_EQ(expect({"refactor", handle, singular, "--fail-singular"}, 10, kept), "");
  EXPECT_EQ(expect({"factor", singular, "--from", handle}, 1, kept), "");
  EXPECT_EQ(RunJson({"info", handle})["version"], 1);
  expect({"refactor", handle, singular, "--replace-if-singular"}, 0, warning);
  EXPECT_EQ(RunJson({"info", handle})["version"], 2);
}

TEST_F(CroutctlTest, RefusedCallsExitWith1AndNameTheStatus) {
  const std::string handle =
      Json::parse(daemon_.Ctl({"--json", "factor", singular_}).output)["handle"];
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"info", "aaaaaaaaaaaaaaaaaaaaaaaaaa"}, "NOT_FOUND"},
      {{"solve", handle, "--ones"}, "FAILED_PRECONDITION"},
      {{"lu", singular_, "--ones"}, "FAILED_PRECONDITION"},
      {{"schur", singular_, "--leading=2"}, "FAILED_PRECONDITION"},
      {{"schur", matrix_, "--leading=4"}, "INVALID_ARGUMENT"},
      {{"factor", singular_, "--algorithm=crout_lu"}, "UNIMPLEMENTED"},
      {{"factor", directory_.File("bad.mtx")}, "INVALID_ARGUMENT"},
      {{"estimate", "--", "-1"}, "INVALID_ARGUMENT"},
      {{"factor", matrix_, "--tolerance=0.5"}, "INVALID_ARGUMENT"},
      {{"factor", matrix_, "--algorithm=getrf", "--threshold=0.5"}, "INVALID_ARGUMENT"},
      {{"factor", matrix_, "--algorithm=getrf", "--interval", "1", "2"}, "INVALID_ARGUMENT"},
      {{"factor", matrix_, "--algorithm=getrf", "--pivoting=threshold"}, "INVALID_ARGUMENT"},
      {{"factor", matrix_, "--algorithm=cmpp", "--threshold=0.5"}, "INVALID_ARGUMENT"},
      {{"factor", matrix_, "--algorithm=gauss_jordan"}, "FAILED_PRECONDITION"},
      {{"lu", matrix_, "--ones", "--solver=trsm", "--solver-tolerance=0.5"}, "INVALID_ARGUMENT"},
  };
  WriteFile(directory_.File("bad.mtx"), "this is no matrix\n");
  for (auto [arguments, status] : refused) {
    arguments.insert(arguments.begin(), "--json");
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, 1) << status << finished.errors;
    EXPECT_THAT(finished.errors, ::testing::HasSubstr("croutctl: " + status + ": "));
    EXPECT_EQ(finished.output, "");
  }
  EXPECT_THAT(daemon_.Ctl({"schur", singular_, "--leading=2"}).errors,
              ::testing::HasSubstr("the leading block (order 2) is singular: row 2 (1-based) is"));
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
      {"factor", matrix_, "--from=h", "--name=n"},
      {"factor", matrix_, "--replace-if-singular"},
      {"solve", "h"},
      {"solve", "h", matrix_, "--ones"},
      {"solve", "h", "--nrhs=2"},
      {"solve", "h", "--ones", "--refine=101"},
      {"solve", "h", "--ones", "--transpose", "--conjugate-transpose"},
      {"lu", matrix_, "--ones", "--name=n"},
      {"lu", "-", "--ones"},
      {"lu", "-", "-"},
      {"schur", matrix_},
      {"schur", matrix_, "--leading=-1"},
      {"get", "h"},
      {"bench", "--concurrency=0"},
  };
  for (const auto& arguments : wrong) {
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, 2) << ::testing::PrintToString(arguments) << finished.errors;
    EXPECT_NE(finished.errors, "");
    EXPECT_EQ(finished.output, "");
  }
  EXPECT_THAT(daemon_.Ctl({"frobnicate", matrix_}).errors, ::testing::HasSubstr("frobnicate"));
  EXPECT_EQ(daemon_.Ctl({"--help"}).exit_code, 0);
  EXPECT_EQ(daemon_.Ctl({"solve", "--help"}).exit_code, 0);
}

TEST_F(CroutctlTest, UnreachableServerExitsWith3) {
  for (const char* server : {"--server=127.0.0.1:1", "--server=unix:/no/such/socket"}) {
    const Finished finished = RunToEnd({ProgramPath("croutctl"), server, "list"});
    EXPECT_EQ(finished.exit_code, 3) << finished.errors;
    EXPECT_THAT(finished.errors, ::testing::HasSubstr("UNAVAILABLE"));
  }
}

// A health check must end, though nobody said when.
TEST_F(CroutctlTest, StatusOfAStoppedServerExitsWith3) {
  daemon_.process().Signal(SIGSTOP);
  const Finished finished = daemon_.Ctl({"status"});
  daemon_.process().Signal(SIGCONT);
  EXPECT_EQ(finished.exit_code, 3) << finished.errors;
  EXPECT_THAT(finished.errors, ::testing::StartsWith("croutctl: DEADLINE_EXCEEDED: "));
}

TEST_F(CroutctlTest, DrainingServerRefusesRatherThanBeingUnreachable) {
  Daemon draining({"--drain-grace=0s", "--drain-limit=1h"});
  // An unfinished upload keeps the drain waiting.
  const auto client = draining.NewClient();
  const std::vector<double> a = {1};
  const auto factor =
      client->Factorize(client::MatrixSource::Dense(absl::MakeConstSpan(a), 1, 1), {}, {});
  ASSERT_TRUE(factor.ok());
  const auto stub = draining.NewStub();
  grpc::ClientContext context;
  const auto open = stub->Factorize(&context);
  v1::FactorizeRequest request;
  request.mutable_header()->mutable_matrix()->mutable_dense()->set_rows(2);
  request.mutable_header()->mutable_matrix()->mutable_dense()->set_cols(2);
  ASSERT_TRUE(open->Write(request));
  ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client).device_bytes > factor->bytes(); }));
  draining.process().Signal(SIGTERM);
  Finished finished;
  EXPECT_TRUE(Eventually([&] {
    finished = draining.Ctl({"info", factor->handle()});
    return finished.exit_code != 0;
  }));
  EXPECT_EQ(finished.exit_code, 1) << finished.errors;
  EXPECT_THAT(finished.errors, ::testing::StartsWith("croutctl: UNAVAILABLE: "));
  context.TryCancel();
  EXPECT_EQ(draining.process().Wait(), 0);
}

}  // namespace
}  // namespace crout::e2e
