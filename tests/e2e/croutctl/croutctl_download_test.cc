// SPDX-License-Identifier: Apache-2.0

// Tests the matrices that croutctl download, schur and rref write.
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/croutctl/croutctl.h"

namespace crout::e2e::croutctl_download_test {
namespace {

TEST_F(CroutctlTest, SchurWritesTheComplementAndKeepsTheFactor) {
  const std::string s = directory_.File("s.mtx");
  const Json schur = RunJson({"schur", matrix_, "--leading-order=1", "-o", s, "--name=a11",
                              "--algorithm=cmpp", "--solver=trsm"});
  // S = [5 0; 0 8] - [4; 0] [0 1] / 2.
  EXPECT_THAT(ArrayValues(s), ::testing::Pointwise(::testing::DoubleEq(), {5, 0, -2, 8}));
  EXPECT_EQ(schur["solver"], "trsm");
  EXPECT_EQ(schur["device"], "host");
  EXPECT_LT(schur["backward_error"], 1e-15);
  EXPECT_EQ(schur["growth"], 1);
  EXPECT_TRUE(schur["timings"].is_object());
  EXPECT_EQ(schur["factor"]["n"], 1);
  EXPECT_EQ(schur["factor"]["algorithm"], "cmpp");
  EXPECT_EQ(RunJson({"describe", schur["factor"]["handle"]})["name"], "a11");
  EXPECT_LT(RunJson({"solve", schur["factor"]["handle"], "--ones"})["backward_error"], 1e-15);
  RunJson({"schur", matrix_, "--leading-order=3"});
}

TEST_F(CroutctlTest, RrefWritesTheFormAndReportsItsRank) {
  const std::string path = directory_.File("wide.mtx");
  std::ofstream(path) << "%%MatrixMarket matrix array real general\n2 3\n1\n2\n2\n4\n3\n5\n";
  const std::string r = directory_.File("r.mtx");
  const Json form = RunJson({"rref", path, "-o", r});
  EXPECT_THAT(ArrayValues(r), ::testing::Pointwise(::testing::DoubleEq(), {1, 0, 2, 0, 0, 1}));
  EXPECT_EQ(form["rank"], 2);
  EXPECT_EQ(form["pivot_columns"], Json({0, 2}));
  EXPECT_EQ(form["device"], "host");
  // The right-hand side contains no pivot. The last row shows that the system has no solution.
  const Json augmented = RunJson({"rref", path, "--augmented=1", "--tolerance=0", "-o", r});
  EXPECT_EQ(augmented["rank"], 1);
  EXPECT_EQ(augmented["tolerance"], 0);
  EXPECT_EQ(augmented["least_pivot"], 2);
  EXPECT_EQ(augmented["largest_rejected"], 0);
  EXPECT_THAT(ArrayValues(r),
              ::testing::Pointwise(::testing::DoubleEq(), {1., 0., 2., 0., 2.5, .5}));
}

// The matrix is Wilkinson's of order 60, whose entries grow to 2^59.
TEST_F(CroutctlTest, RrefWarnsIfTheRankIsInDoubt) {
  constexpr int kN = 60;
  std::string growing =
      absl::StrCat("%%MatrixMarket matrix array real general\n", kN, " ", kN, "\n");
  for (int j = 0; j < kN; ++j) {
    for (int i = 0; i < kN; ++i) {
      absl::StrAppend(&growing, j == kN - 1 || i == j ? 1 : i > j ? -1 : 0, "\n");
    }
  }
  const std::string path = directory_.File("growing.mtx");
  std::ofstream(path) << growing;
  const auto rref = daemon_.Ctl({"rref", path, "-v"});
  EXPECT_EQ(rref.exit_code, 22);
  EXPECT_THAT(rref.errors,
              ::testing::HasSubstr("warning: the rank and the echelon form may be wrong"));
  EXPECT_THAT(rref.errors, ::testing::HasSubstr("least_pivot "));
  EXPECT_THAT(rref.errors, ::testing::HasSubstr("poor_echelon_form"));
}

TEST_F(CroutctlTest, GetWritesFactorsThatMultiplyBack) {
  for (const char* algorithm : {"getrf", "cmpp"}) {
    const std::string handle =
        RunJson({"factor", matrix_, std::string("--algorithm=") + algorithm})["handle"];
    const std::string prefix = directory_.File(algorithm);
    const Json written = RunJson({"download", handle, "-o", prefix});
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

// Returns the dense column-major matrix of a coordinate file of order n.
std::vector<double> Coordinates(const std::string& path, size_t n) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "%%MatrixMarket matrix coordinate real general");
  size_t rows = 0, cols = 0, entries = 0, i = 0, j = 0;
  file >> rows >> cols >> entries;
  EXPECT_EQ(rows, n);
  EXPECT_EQ(cols, n);
  std::vector<double> full(n * n);
  double value = 0;
  for (; file >> i >> j >> value; --entries) full.at(i - 1 + (j - 1) * n) += value;
  EXPECT_EQ(entries, 0u);
  return full;
}

TEST_F(CroutctlTest, GetWritesSparseFactorsThatMultiplyBack) {
  constexpr size_t kN = 6;
  std::string text = "%%MatrixMarket matrix coordinate real general\n6 6 16\n";
  std::vector<double> a(kN * kN);
  const auto add = [&](size_t i, size_t j, int value) {
    a[i + j * kN] = value;
    text +=
        std::to_string(i + 1) + " " + std::to_string(j + 1) + " " + std::to_string(value) + "\n";
  };
  for (size_t i = 0; i < kN; ++i) {
    add(i, i, 7 + static_cast<int>(i));
    if (i + 1 < kN) add(i, i + 1, -2);
    if (i > 0) add(i, i - 1, 3);
  }
  const std::string matrix = directory_.File("sparse.mtx"), prefix = directory_.File("sparse");
  WriteFile(matrix, text);
  for (const char* equilibrate : {"--equilibrate=off", "--equilibrate=on"}) {
    const std::string handle =
        RunJson({"factor", matrix, "--algorithm=multifrontal", equilibrate})["handle"];
    const Json written = RunJson({"download", handle, "-o", prefix});
    EXPECT_THAT(Strings(written["files"]),
                ::testing::IsSupersetOf(
                    {prefix + "_L.mtx", prefix + "_U.mtx", prefix + "_p.mtx", prefix + "_q.mtx"}));
    const auto l = Coordinates(prefix + "_L.mtx", kN), u = Coordinates(prefix + "_U.mtx", kN);
    const auto p = ArrayValues(prefix + "_p.mtx"), q = ArrayValues(prefix + "_q.mtx");
    ASSERT_THAT(p, ::testing::SizeIs(kN));
    ASSERT_THAT(q, ::testing::SizeIs(kN));
    std::vector<double> r(kN, 1), c(kN, 1);
    if (written["files"].size() > 4) {
      r = ArrayValues(prefix + "_row_scales.mtx");
      c = ArrayValues(prefix + "_col_scales.mtx");
    }
    EXPECT_EQ(written["files"].size(), equilibrate == std::string("--equilibrate=on") ? 6u : 4u);
    for (size_t i = 0; i < kN; ++i) {
      for (size_t j = 0; j < kN; ++j) {
        double sum = 0;
        for (size_t k = 0; k < kN; ++k) sum += l[i + k * kN] * u[k + j * kN];
        const auto row = static_cast<size_t>(p[i]) - 1, col = static_cast<size_t>(q[j]) - 1;
        EXPECT_NEAR(sum, r[row] * a[row + col * kN] * c[col], 1e-13);
      }
    }
  }
}

// A = R^-1 P L U C^-1, where R and C are the scales and P is the permutation.
TEST_F(CroutctlTest, GetWritesTheScalesToo) {
  const std::string badly_scaled = directory_.File("scaled.mtx");
  WriteFile(badly_scaled, "%%MatrixMarket matrix array real general\n2 2\n4e9\n1\n1e9\n3e-9\n");
  const std::string handle = RunJson({"factor", badly_scaled, "--equilibrate=on"})["handle"];
  const std::string prefix = directory_.File("scaled");
  const Json written = RunJson({"download", handle, "-o", prefix});
  EXPECT_THAT(Strings(written["files"]),
              ::testing::ElementsAre(prefix + "_L.mtx", prefix + "_U.mtx", prefix + "_p.mtx",
                                     prefix + "_row_scales.mtx", prefix + "_col_scales.mtx"));
  const auto l = ArrayValues(prefix + "_L.mtx"), u = ArrayValues(prefix + "_U.mtx");
  const auto p = ArrayValues(prefix + "_p.mtx");
  const auto r = ArrayValues(prefix + "_row_scales.mtx");
  const auto c = ArrayValues(prefix + "_col_scales.mtx");
  ASSERT_THAT(r, ::testing::SizeIs(2));
  ASSERT_THAT(c, ::testing::SizeIs(2));
  const std::vector<double> a = {4e9, 1, 1e9, 3e-9};
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      const auto row = static_cast<size_t>(p[i]) - 1;
      const double lu = l[i] * u[2 * j] + l[i + 2] * u[1 + 2 * j];
      EXPECT_NEAR(lu, r[row] * a[row + 2 * j] * c[j], 1e-15);
    }
  }
}

TEST_F(CroutctlTest, GetWritesNumPysFormatWithRowsFromZero) {
  const std::string handle = Factor();
  const std::string prefix = directory_.File("np");
  const Json written = RunJson({"download", handle, "-o", prefix, "--format=npy"});
  EXPECT_EQ(written["files"][2], prefix + "_p.npy");
  EXPECT_THAT(ReadFile(prefix + "_p.npy"), ::testing::HasSubstr("'<i8'"));
  EXPECT_THAT(ReadFile(prefix + "_p.npy"), ::testing::HasSubstr("'shape': (3,)"));
  RunJson({"download", handle, "-o", prefix, "--format=txt"});
  EXPECT_EQ(ReadFile(prefix + "_p.txt"), "1\n0\n2\n");
}

TEST_F(CroutctlTest, GetWritesAnArchiveToStandardOutput) {
  const std::string badly_scaled = directory_.File("scaled.mtx");
  WriteFile(badly_scaled, "%%MatrixMarket matrix array real general\n2 2\n4e9\n1\n1e9\n3e-9\n");
  const std::string handle = RunJson({"factor", badly_scaled, "--equilibrate=on"})["handle"];
  const std::string prefix = directory_.File("f");
  RunJson({"download", handle, "-o", prefix, "--format=npy"});
  const Finished got = daemon_.Ctl({"download", handle, "-o", "-", "--json"});
  ASSERT_EQ(got.exit_code, 0) << got.errors;
  EXPECT_THAT(Strings(Json::parse(got.errors)["files"]),
              ::testing::ElementsAre("L", "U", "p", "row_scales", "col_scales"));
  const std::string archive = directory_.File("f.npz");
  WriteFile(archive, got.output);
  const std::string identity = directory_.File("identity.txt");
  WriteFile(identity, "1 0\n0 1\n");
  const std::string in_archive = directory_.File("in_archive.mtx");
  const std::string in_file = directory_.File("in_file.mtx");
  for (const std::string part : {"L", "U", "p", "row_scales", "col_scales"}) {
    RunJson({"lu", identity, absl::StrCat(archive, ":", part), "-o", in_archive});
    RunJson({"lu", identity, absl::StrCat(prefix, "_", part, ".npy"), "-o", in_file});
    EXPECT_EQ(ReadFile(in_archive), ReadFile(in_file)) << part;
  }
  EXPECT_EQ(RunInShell({"download", handle, "-o", "-"}, ">/dev/full").exit_code, 19);
}

// Returns the numbers that croutctl reads from an array file or from an array in an archive.
std::vector<double> NumbersOf(Daemon* daemon, const TempDir& directory, const std::string& path,
                              size_t size) {
  std::string identity = absl::StrCat("%%MatrixMarket matrix coordinate real general\n", size, " ",
                                      size, " ", size, "\n");
  for (size_t i = 1; i <= size; ++i) absl::StrAppend(&identity, i, " ", i, " 1\n");
  const std::string matrix = directory.File("identity.mtx"), x = directory.File("numbers.mtx");
  WriteFile(matrix, identity);
  const Finished solved = daemon->Ctl({"lu", matrix, path, "-o", x});
  EXPECT_EQ(solved.exit_code, 0) << path << solved.errors;
  return ArrayValues(x);
}

TEST_F(CroutctlTest, GetWritesSparseFactorsAsCompressedRowsWhereNumPyReadsThem) {
  // The matrix is [2 4; 0 3].
  const std::string matrix = directory_.File("two.mtx"), archive = directory_.File("f.npz");
  WriteFile(matrix, "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 2\n1 2 4\n2 2 3\n");
  const std::string handle =
      RunJson({"factor", matrix, "--algorithm=klu", "--equilibrate=off"})["handle"];
  const Finished got = daemon_.Ctl({"download", handle, "-o", "-", "--json"});
  ASSERT_EQ(got.exit_code, 0) << got.errors;
  EXPECT_THAT(Strings(Json::parse(got.errors)["files"]),
              ::testing::ElementsAre("L_data", "L_indices", "L_indptr", "U_data", "U_indices",
                                     "U_indptr", "p", "q"));
  WriteFile(archive, got.output);
  const std::string prefix = directory_.File("two");
  RunJson({"download", handle, "-o", prefix, "--format=npy"});
  const auto part = [&](const std::string& name, size_t size) {
    const auto numbers = NumbersOf(&daemon_, directory_, absl::StrCat(archive, ":", name), size);
    EXPECT_EQ(NumbersOf(&daemon_, directory_, absl::StrCat(prefix, "_", name, ".npy"), size),
              numbers)
        << name;
    return numbers;
  };
  // L is the identity, because the matrix is upper triangular in the order of KLU.
  EXPECT_THAT(part("L_data", 2), ::testing::ElementsAre(1, 1));
  EXPECT_THAT(part("L_indices", 2), ::testing::ElementsAre(0, 1));
  EXPECT_THAT(part("L_indptr", 3), ::testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(part("U_indptr", 3), ::testing::ElementsAre(0, 2, 3));
  EXPECT_THAT(part("U_indices", 3), ::testing::ElementsAre(0, 1, 1));
  EXPECT_THAT(part("U_data", 3), ::testing::ElementsAre(2, 4, 3));
  EXPECT_THAT(part("p", 2), ::testing::ElementsAre(0, 1));
  EXPECT_THAT(part("q", 2), ::testing::ElementsAre(0, 1));
}

}  // namespace
}  // namespace crout::e2e::croutctl_download_test
