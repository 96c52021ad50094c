// SPDX-License-Identifier: Apache-2.0

// Tests croutctl factor-batch, solve-batch and get --member.
#include <cmath>

#include "tests/e2e/croutctl/croutctl.h"

namespace crout::e2e::croutctl_batch_test {
namespace {

// Uses the 3 x 3 matrix of the base fixture, a 1 x 1 matrix and a singular one.
class CroutctlBatchTest : public CroutctlTest {
 protected:
  CroutctlBatchTest() {
    WriteFile(one_, "%%MatrixMarket matrix array real general\n1 1\n4\n");
    WriteFile(rhs3_, "%%MatrixMarket matrix array real general\n3 1\n3\n9\n8\n");
    WriteFile(rhs1_, "%%MatrixMarket matrix array real general\n1 2\n8\n2\n");
    WriteFile(rhs2_, "%%MatrixMarket matrix array real general\n2 1\n1\n1\n");
  }

  const std::string one_ = directory_.File("one.mtx");
  const std::string rhs3_ = directory_.File("b3.mtx");
  const std::string rhs1_ = directory_.File("b1.mtx");
  const std::string rhs2_ = directory_.File("b2.mtx");
};

TEST_F(CroutctlBatchTest, FactorsSolvesAndDownloadsMembers) {
  const Json factor = RunJson({"factor-batch", matrix_, one_, "--name=elements"});
  EXPECT_EQ(factor["algorithm"], "irr_lu");
  EXPECT_EQ(factor["batch"]["members"], 2);
  ASSERT_EQ(factor["members"].size(), 2u);
  EXPECT_EQ(factor["members"][0]["rows"], 3);
  EXPECT_EQ(factor["members"][1]["info"], 0);
  EXPECT_EQ(factor["members"][1]["pivot_growth"], 1);

  const std::string prefix = directory_.File("x");
  const Json solved = RunJson({"solve-batch", "elements", rhs3_, rhs1_, "-o", prefix});
  EXPECT_LT(solved["backward_error"], 1e-15);
  EXPECT_EQ(solved["systems"][1]["file"], prefix + "_1.mtx");
  EXPECT_THAT(ArrayValues(prefix + "_0.mtx"),
              ::testing::Pointwise(::testing::DoubleEq(), {1, 1, 1}));
  EXPECT_THAT(ArrayValues(prefix + "_1.mtx"), ::testing::ElementsAre(2, 0.5));

  const std::string list = directory_.File("y");
  const Json chosen = RunJson(
      {"solve-batch", "elements", rhs1_, rhs3_, "--members=1,0", "--no-verify", "-o", list});
  EXPECT_EQ(chosen["systems"][0]["member"], 1);
  EXPECT_FALSE(chosen.contains("backward_error"));
  EXPECT_THAT(ArrayValues(list + "_1.mtx"), ::testing::ElementsAre(2, 0.5));

  const Finished printed = daemon_.Ctl({"solve-batch", "elements", rhs3_, rhs1_, "--format=txt"});
  EXPECT_EQ(printed.exit_code, 0) << printed.errors;
  EXPECT_EQ(printed.output, "1\n1\n1\n\n2 0.5\n");
  EXPECT_THAT(printed.errors, ::testing::HasSubstr("on standard output\n"));
  const Finished archive = daemon_.Ctl({"solve-batch", "elements", rhs3_, rhs1_, "--format=npz"});
  EXPECT_THAT(archive.output, ::testing::StartsWith("PK"));
  EXPECT_THAT(archive.errors, ::testing::HasSubstr("x_0 to x_1\n"));
  EXPECT_FALSE(RunJson({"solve-batch", "elements", "--ones"})["systems"][0].contains("file"));

  const std::string parts = directory_.File("lu");
  const Json got = RunJson({"download", "elements", "--member=0", "-o", parts});
  EXPECT_EQ(got["member"], 0);
  const auto l = ArrayValues(parts + "_L.mtx");
  const auto u = ArrayValues(parts + "_U.mtx");
  const auto p = ArrayValues(parts + "_p.mtx");
  ASSERT_EQ(l.size(), 9u);
  ASSERT_EQ(p.size(), 3u);
  const std::vector<double> a = {2, 4, 0, 0, 5, 0, 1, 0, 8};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += l[i + 3 * k] * u[k + 3 * j];
      EXPECT_NEAR(sum, a[static_cast<size_t>(p[i]) - 1 + 3 * j], 1e-14);
    }
  }
}

TEST_F(CroutctlBatchTest, SolvesWithARangeOfMembers) {
  RunJson({"factor-batch", matrix_, one_, matrix_, one_, "--name=elements"});
  const auto members = [](const Json& solved) {
    std::vector<int> numbers;
    for (const Json& system : solved["systems"]) numbers.push_back(system["member"]);
    return numbers;
  };
  const std::string prefix = directory_.File("x");
  const Json first =
      RunJson({"solve-batch", "elements", rhs3_, rhs1_, rhs3_, "--members=0-2", "-o", prefix});
  EXPECT_THAT(members(first), ::testing::ElementsAre(0, 1, 2));
  EXPECT_LT(first["backward_error"], 1e-15);
  EXPECT_THAT(ArrayValues(prefix + "_0.mtx"),
              ::testing::Pointwise(::testing::DoubleEq(), {1, 1, 1}));
  EXPECT_THAT(ArrayValues(prefix + "_1.mtx"), ::testing::ElementsAre(2, 0.5));
  EXPECT_EQ(ArrayValues(prefix + "_2.mtx"), ArrayValues(prefix + "_0.mtx"));

  const std::string more = directory_.File("y");
  const Json mixed = RunJson({"solve-batch", "elements", "--ones", "--members=3,1-2", "-o", more});
  EXPECT_THAT(members(mixed), ::testing::ElementsAre(3, 1, 2));
  EXPECT_THAT(ArrayValues(more + "_3.mtx"), ::testing::ElementsAre(0.25));
  EXPECT_EQ(ArrayValues(more + "_2.mtx").size(), 3u);
}

TEST_F(CroutctlBatchTest, SolvesForOnesOfEachMembersSize) {
  RunJson({"factor-batch", one_, matrix_, "--name=elements"});
  const std::string prefix = directory_.File("x");
  const Json all = RunJson({"solve-batch", "elements", "--ones", "-o", prefix});
  EXPECT_LT(all["backward_error"], 1e-15);
  ASSERT_EQ(all["systems"].size(), 2u);
  EXPECT_THAT(ArrayValues(prefix + "_0.mtx"), ::testing::ElementsAre(0.25));
  const auto x = ArrayValues(prefix + "_1.mtx");
  ASSERT_EQ(x.size(), 3u);
  const std::vector<double> a = {2, 4, 0, 0, 5, 0, 1, 0, 8};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(a[i] * x[0] + a[i + 3] * x[1] + a[i + 6] * x[2], 1, 1e-15);
  }

  const std::string some = directory_.File("y");
  const Json chosen =
      RunJson({"solve-batch", "elements", "--ones", "--nrhs=2", "--members=1", "-o", some});
  EXPECT_EQ(chosen["systems"].size(), 1u);
  EXPECT_EQ(ArrayValues(some + "_1.mtx").size(), 6u);
}

TEST_F(CroutctlBatchTest, ReplacesABatchByOneOfTheSameSizes) {
  const std::string handle = RunJson({"factor-batch", matrix_, one_})["handle"];
  WriteFile(one_, "%%MatrixMarket matrix array real general\n1 1\n5\n");
  const Json next = RunJson({"factor-batch", matrix_, one_, "--from", handle});
  EXPECT_EQ(next["handle"], handle);
  EXPECT_EQ(next["version"], 2);
  EXPECT_EQ(daemon_.Ctl({"factor-batch", one_, "--from", handle}).exit_code, 13);
  EXPECT_EQ(daemon_.Ctl({"factor-batch", one_, "--from", handle, "--name=a"}).exit_code, 2);
}

TEST_F(CroutctlBatchTest, ReportsSingularMembers) {
  const Finished warned = daemon_.Ctl({"factor-batch", matrix_, singular_, "--name=s"});
  EXPECT_EQ(warned.exit_code, 0) << warned.errors;
  EXPECT_THAT(warned.errors, ::testing::HasSubstr("1 of 2 members is singular; the first is 1 ("));
  EXPECT_THAT(warned.errors, ::testing::HasSubstr("singular.mtx"));
  EXPECT_EQ(daemon_.Ctl({"factor-batch", matrix_, singular_, "--fail-singular"}).exit_code, 10);
  const Finished solved = daemon_.Ctl({"solve-batch", "s", rhs3_, rhs2_, "--json"});
  EXPECT_EQ(solved.exit_code, 0) << solved.errors;
  EXPECT_THAT(solved.errors, ::testing::HasSubstr("1 of 2 systems has a singular member"));
  EXPECT_EQ(Json::parse(solved.output)["systems"][1]["info"], 2);
}

TEST_F(CroutctlBatchTest, TakesDirectoriesAndTars) {
  const std::string tar = directory_.File("all.tar");
  const std::string from = tar.substr(0, tar.rfind('/'));
  ASSERT_EQ(RunToEnd({"/bin/tar", "-C", from, "-cf", tar, "a.mtx", "one.mtx"}).exit_code, 0);
  const Json of_tar = RunJson({"factor-batch", tar});
  EXPECT_EQ(of_tar["batch"]["members"], 2);
  EXPECT_EQ(of_tar["members"][1]["file"], tar + ":one.mtx");
  // The folder has six matrices. Its tar archive does not count.
  const Finished whole = daemon_.Ctl({"factor-batch", from, "--json"});
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  EXPECT_EQ(Json::parse(whole.output)["batch"]["members"], 6);
  const std::string text = ReadFile(tar);
  WriteFile(tar, text.substr(0, 700));
  const Finished cut = daemon_.Ctl({"factor-batch", tar});
  EXPECT_EQ(cut.exit_code, 12);
  EXPECT_THAT(cut.errors, ::testing::HasSubstr("truncated"));
}

TEST_F(CroutctlBatchTest, StandardInputIsATarOrAFileAndStandardOutputAnArchive) {
  const std::string tar = directory_.File("all.tar");
  const std::string from = tar.substr(0, tar.rfind('/'));
  ASSERT_EQ(RunToEnd({"/bin/tar", "-C", from, "-cf", tar, "one.mtx", "a.mtx"}).exit_code, 0);
  const Finished made = RunPiped(tar, {"factor-batch", "-", "--name=all", "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_EQ(Json::parse(made.output)["members"][0]["file"], "standard input:one.mtx");
  const Finished one = RunPiped(one_, {"factor-batch", matrix_, "-", "--json"});
  ASSERT_EQ(one.exit_code, 0) << one.errors;
  EXPECT_EQ(Json::parse(one.output)["members"][1]["file"], "standard input");

  const Finished solved =
      RunPiped(rhs3_, {"solve-batch", "all", "-", "--members=1", "-o", "-", "--json"});
  ASSERT_EQ(solved.exit_code, 0) << solved.errors;
  EXPECT_EQ(Json::parse(solved.errors)["systems"][0]["file"], "x_1");
  const std::string archive = directory_.File("x.npz"), x = directory_.File("x.mtx");
  WriteFile(archive, solved.output);
  const std::string identity = directory_.File("identity.txt");
  WriteFile(identity, "1 0 0\n0 1 0\n0 0 1\n");
  RunJson({"lu", identity, archive + ":x_1", "-o", x});
  EXPECT_THAT(ArrayValues(x), ::testing::Pointwise(::testing::DoubleEq(), {1, 1, 1}));

  WriteFile(tar, ReadFile(tar).substr(0, 700));
  const Finished cut = RunPiped(tar, {"factor-batch", "-"});
  EXPECT_EQ(cut.exit_code, 12);
  EXPECT_THAT(cut.errors, ::testing::HasSubstr("standard input: the file is truncated"));
}

TEST_F(CroutctlBatchTest, AnArchiveTakesMoreMembersThanFilesMayBeOpen) {
  std::vector<std::string> members(100, one_);
  members.insert(members.begin(), {"factor-batch", "--name=many"});
  RunJson(members);
  std::vector<std::string> command = {"/bin/sh", "-c", "ulimit -n 60; exec \"$@\"", "sh"};
  for (const std::string& word :
       daemon_.CtlCommand({"solve-batch", "many", "--ones", "-o", "-", "--json"})) {
    command.push_back(word);
  }
  const Finished solved = RunToEnd(command);
  ASSERT_EQ(solved.exit_code, 0) << solved.errors;
  EXPECT_EQ(Json::parse(solved.errors)["systems"].size(), 100u);
}

TEST_F(CroutctlBatchTest, ExitCodesNameTheError) {
  const std::string handle = RunJson({"factor-batch", matrix_, one_})["handle"];
  const std::string dense = Factor();
  const auto exits = [&](const std::vector<std::string>& arguments) {
    return daemon_.Ctl(arguments).exit_code;
  };
  EXPECT_EQ(exits({"factor-batch"}), 2);
  EXPECT_EQ(exits({"factor-batch", "none.mtx"}), 2);
  EXPECT_EQ(exits({"factor-batch", "-", "-"}), 2);
  EXPECT_EQ(exits({"solve-batch", handle, rhs3_, "--members=a"}), 2);
  EXPECT_EQ(exits({"solve-batch", handle, rhs3_, "--members=3-1"}), 2);
  EXPECT_EQ(exits({"solve-batch", handle, rhs3_, "--members=0,1"}), 12);
  EXPECT_EQ(exits({"solve-batch", handle, rhs3_, "--members=7"}), 12);
  EXPECT_EQ(exits({"solve-batch", handle, rhs1_}), 12);
  EXPECT_EQ(exits({"solve-batch", handle}), 2);
  EXPECT_EQ(exits({"solve-batch", handle, rhs3_, "--ones"}), 2);
  EXPECT_EQ(exits({"solve-batch", handle, rhs3_, "--nrhs=2"}), 2);
  EXPECT_EQ(exits({"solve-batch", handle, "--ones", "--members=1,2"}), 12);
  EXPECT_EQ(exits({"solve-batch", dense, "--ones"}), 13);
  EXPECT_EQ(exits({"solve-batch", dense, rhs3_}), 13);
  EXPECT_EQ(exits({"solve-batch", "nobody", rhs3_}), 11);
  EXPECT_EQ(exits({"download", handle, "--member=2", "-o", directory_.File("l")}), 12);
  EXPECT_EQ(exits({"download", dense, "--member=0", "-o", directory_.File("l")}), 13);
  EXPECT_EQ(exits({"download", handle, "-o", directory_.File("l")}), 13);
  EXPECT_THAT(daemon_.Ctl({"download", handle, "-o", directory_.File("l")}).errors,
              ::testing::HasSubstr("--member"));
}

}  // namespace
}  // namespace crout::e2e::croutctl_batch_test
