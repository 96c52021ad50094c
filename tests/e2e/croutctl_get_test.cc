// croutctl get and schur: the matrices that they write.
#include "tests/e2e/croutctl.h"

namespace crout::e2e {
namespace {

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

// With them, and the permutation, A is R^-1 P L U C^-1.
TEST_F(CroutctlTest, GetWritesTheScalesToo) {
  const std::string badly_scaled = directory_.File("scaled.mtx");
  WriteFile(badly_scaled, "%%MatrixMarket matrix array real general\n2 2\n4e9\n1\n1e9\n3e-9\n");
  const std::string handle = RunJson({"factor", badly_scaled, "--equilibrate=on"})["handle"];
  const std::string prefix = directory_.File("scaled");
  const Json written = RunJson({"get", handle, "-o", prefix});
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
  const Json written = RunJson({"get", handle, "-o", prefix, "--format=npy"});
  EXPECT_EQ(written["files"][2], prefix + "_p.npy");
  EXPECT_THAT(ReadFile(prefix + "_p.npy"), ::testing::HasSubstr("'<i8'"));
  RunJson({"get", handle, "-o", prefix, "--format=txt"});
  EXPECT_EQ(ReadFile(prefix + "_p.txt"), "1\n0\n2\n");
}

}  // namespace
}  // namespace crout::e2e
