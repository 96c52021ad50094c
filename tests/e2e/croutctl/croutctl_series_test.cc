// SPDX-License-Identifier: Apache-2.0

// Tests croutctl series: the choice of the files of steps, output and exit codes.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/e2e/croutctl/croutctl.h"

namespace crout::e2e::croutctl_series_test {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::StartsWith;

class CroutctlSeriesTest : public CroutctlTest {
 protected:
  CroutctlSeriesTest() { std::filesystem::create_directory(steps_); }

  // Writes diag(d, d) as a text file.
  void WriteDiagonal(const std::string& name, double d) {
    WriteFile(steps_ + "/" + name, absl::StrCat(d, " 0\n0 ", d, "\n"));
  }
  void WriteSide(const std::string& name, double b) {
    WriteFile(steps_ + "/" + name,
              absl::StrCat("%%MatrixMarket matrix array real general\n2 1\n", b, "\n", b, "\n"));
  }

  // Runs croutctl series and returns the JSON object of each step.
  std::vector<Json> Series(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--json", "series"});
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    std::vector<Json> steps;
    std::istringstream lines(finished.output);
    for (std::string line; std::getline(lines, line);) steps.push_back(Json::parse(line));
    return steps;
  }
  size_t Factors() { return RunJson({"list"})["factors"].size(); }
  // Returns a tar of these files of steps_, in this order, without the zeros at its end.
  std::string TarOf(const std::vector<std::string>& names) {
    const std::string tar = directory_.File("part.tar");
    std::vector<std::string> command = {"/bin/tar", "--format=ustar", "-C", steps_, "-cf", tar};
    command.insert(command.end(), names.begin(), names.end());
    EXPECT_EQ(RunToEnd(command).exit_code, 0);
    std::string bytes = ReadFile(tar);
    bytes.resize(bytes.find_last_not_of('\0') + 1);
    bytes.resize((bytes.size() + 511) / 512 * 512);
    return bytes;
  }

  const std::string steps_ = directory_.File("steps");
  const std::string x_ = directory_.File("x");
};

TEST_F(CroutctlSeriesTest, ADirectoryHasStepsByName) {
  WriteDiagonal("A_00.txt", 2);
  WriteSide("b_00.mtx", 2);
  WriteSide("b_01.mtx", 6);  // uses the matrix of the previous step
  WriteDiagonal("A_02.txt", 2.000002);
  WriteSide("rhs-02.mtx", 2.000002);
  WriteFile(steps_ + "/README.md", "no step");
  const auto steps = Series({steps_, "--strategy=reuse", "--accuracy=1e-12", "-o", x_});
  ASSERT_EQ(steps.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(steps[i]["step"], i);
    EXPECT_EQ(steps[i]["age"], i);
    EXPECT_EQ(steps[i]["strategy"], i == 0 ? "refactor" : "reuse");
    EXPECT_EQ(steps[i]["accuracy"], 1e-12);
    EXPECT_LE(steps[i]["backward_error"], 1e-12);
    EXPECT_EQ(steps[i].contains("factor"), i == 0);
  }
  EXPECT_EQ(steps[1]["matrix"], "");
  EXPECT_THAT(steps[2]["rhs"].get<std::string>(), ::testing::EndsWith("rhs-02.mtx"));
  const double expected[] = {1, 3, 1};
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(ArrayValues(absl::StrCat(x_, "/x_00", i, ".mtx")),
                Pointwise(DoubleNear(1e-11), {expected[i], expected[i]}));
  }
  EXPECT_EQ(Factors(), 0u);
}

TEST_F(CroutctlSeriesTest, StandardInputIsATarAndStandardOutputAnArchive) {
  WriteDiagonal("A_0.txt", 2);
  WriteFile(steps_ + "/entries_1.mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 4\n2 2 4\n");
  WriteSide("b_1.mtx", 8);
  WriteFile(steps_ + "/A_2.txt", "0 0\n0 1\n");  // singular, so there is no X
  WriteDiagonal("A_3.txt", 5);
  WriteFile(steps_ + "/README.md", "no step");
  const std::string tar = directory_.File("steps.tgz");
  ASSERT_EQ(RunToEnd({"/bin/tar", "-C", directory_.File(""), "-czf", tar, "steps"}).exit_code, 0);
  const Finished finished = RunPiped(tar, {"series", "-", "--ones", "-o", "-", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.errors;
  std::istringstream lines(finished.errors);
  std::vector<Json> steps;
  for (std::string line; std::getline(lines, line);) steps.push_back(Json::parse(line));
  ASSERT_EQ(steps.size(), 5u);  // includes a warning about the singular step
  EXPECT_EQ(steps[0]["matrix"], "standard input:A_0.txt");
  EXPECT_EQ(steps[1]["rhs"], "standard input:b_1.mtx");
  EXPECT_EQ(steps[1]["change"], Json::array({"standard input:entries_1.mtx"}));
  const std::string archive = directory_.File("x.npz"), x = directory_.File("x.mtx"),
                    identity = directory_.File("identity.txt");
  WriteFile(archive, finished.output);
  WriteFile(identity, "1 0\n0 1\n");
  for (const auto& [part, value] : {std::pair("x_000", 0.5), {"x_001", 2.0}, {"x_003", 0.2}}) {
    RunJson({"lu", identity, absl::StrCat(archive, ":", part), "-o", x});
    EXPECT_THAT(ArrayValues(x), Pointwise(DoubleNear(1e-15), {value, value})) << part;
  }
  EXPECT_THAT(daemon_.Ctl({"lu", identity, archive + ":x_002"}).errors,
              HasSubstr("has x_000, x_001, x_003, but no x_002"));
  EXPECT_EQ(Series({tar, "--ones"})[3]["matrix"], tar + ":A_3.txt");
}

// The second matrix is only sent when the first solution has been written.
TEST_F(CroutctlSeriesTest, StepsOfATarAreSolvedAsTheyArrive) {
  for (int i = 0; i < 3; ++i) {
    WriteDiagonal(absl::StrCat("A_", i, ".txt"), 1 << i);
    WriteSide(absl::StrCat("b_", i, ".mtx"), 4);
    WriteSide(absl::StrCat("x0_", i, ".mtx"), 1);
  }
  const std::string pipe = directory_.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Process series(daemon_.CtlCommand({"series", "-", "-o", x_, "--format=txt"}), pipe);
  std::ofstream tar(pipe, std::ios::binary);
  // Waits until X of a step has been written, or the process has ended.
  const auto expect_written = [&](int step, const std::string& x) {
    const std::string file = absl::StrCat(x_, "/x_00", step, ".txt");
    EXPECT_TRUE(Eventually([&] { return ReadFile(file) == x || !series.running(); }));
    ASSERT_EQ(ReadFile(file), x) << series.Errors();
  };
  tar << TarOf({"A_0.txt", "b_0.mtx"}) << std::flush;
  ASSERT_NO_FATAL_FAILURE(expect_written(0, "4\n4\n"));
  tar << TarOf({"x0_0.mtx", "x0_1.mtx", "b_1.mtx", "A_1.txt"}) << std::flush;  // x0_0 is ignored
  ASSERT_NO_FATAL_FAILURE(expect_written(1, "2\n2\n"));
  tar << TarOf({"b_2.mtx"}) << std::string(1024, '\0');  // with the matrix of the step before
  tar.close();
  EXPECT_EQ(series.Wait(), 0) << series.Errors();
  EXPECT_EQ(ReadFile(x_ + "/x_002.txt"), "2\n2\n");
}

TEST_F(CroutctlSeriesTest, StepsOfATarMayArriveInAnyOrder) {
  for (int i = 0; i < 4; ++i) WriteDiagonal(absl::StrCat("A_", i, ".txt"), 1 << i);
  const std::string tar = directory_.File("steps.tar");
  const auto matrices = [&](const std::vector<std::string>& names) {
    WriteFile(tar, TarOf(names) + std::string(1024, '\0'));
    const Finished finished = RunPiped(tar, {"series", "-", "--ones", "--json"});
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    std::string order;
    std::istringstream lines(finished.output);
    for (std::string line; std::getline(lines, line);) {
      order += Json::parse(line)["matrix"].get<std::string>().substr(17, 1);  // "standard input:A_"
    }
    return order;
  };
  EXPECT_EQ(matrices({"A_2.txt", "A_0.txt", "A_3.txt", "A_1.txt"}), "0123");
  EXPECT_EQ(matrices({"A_3.txt", "A_2.txt", "A_1.txt"}), "123") << "the numbers begin with 1";
  WriteSide("b_0.mtx", 1);
  WriteFile(tar, TarOf({"A_0.txt", "A_1.txt", "b_0.mtx"}));
  const Finished late = RunPiped(tar, {"series", "-", "--ones"});
  EXPECT_EQ(late.exit_code, 12);
  EXPECT_THAT(late.errors, HasSubstr("standard input:b_0.mtx arrived after its step was solved"));
}

TEST_F(CroutctlSeriesTest, SolutionsWithoutAFileArePrinted) {
  WriteDiagonal("A_0.txt", 2);
  WriteDiagonal("A_1.txt", 4);
  const Finished text = daemon_.Ctl({"series", steps_, "--ones", "--format=txt"});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_EQ(text.output, "0.5\n0.5\n\n0.25\n0.25\n");
  EXPECT_THAT(text.errors, StartsWith("step  strategy"));
  EXPECT_THAT(daemon_.Ctl({"series", steps_, "--ones"}).output,
              StartsWith("%%MatrixMarket matrix array real general\n2 1\n0.5\n0.5\n%%Matrix"));
  EXPECT_THAT(daemon_.Ctl({"series", steps_, "--ones", "--format=npz"}).output, StartsWith("PK"));
}

TEST_F(CroutctlSeriesTest, StandardInputIsOneMatrixToo) {
  WriteDiagonal("A.txt", 4);
  const Finished table = RunPiped(steps_ + "/A.txt", {"series", "-", "--ones", "--json"});
  ASSERT_EQ(table.exit_code, 0) << table.errors;
  EXPECT_EQ(Json::parse(table.output)["matrix"], "standard input");
}

TEST_F(CroutctlSeriesTest, TheCommonRightHandSideIsOnStandardInputToo) {
  WriteDiagonal("A.txt", 4);
  const std::string rhs = directory_.File("b.mtx");
  WriteFile(rhs, "%%MatrixMarket matrix array complex general\n2 1\n0 4\n8 0\n");
  const Finished solved =
      RunPiped(rhs, {"series", steps_ + "/A.txt", "--rhs=-", "-o", x_, "--format=txt"});
  ASSERT_EQ(solved.exit_code, 0) << solved.errors;
  EXPECT_EQ(ReadFile(x_ + "/x_000.txt"), "(0+1j)\n(2+0j)\n");
  EXPECT_EQ(daemon_.Ctl({"series", "-", "--rhs=-"}).exit_code, 2);
}

TEST_F(CroutctlSeriesTest, AStepThatFailsLeavesTheSolutionsBeforeIt) {
  WriteDiagonal("A_0.txt", 2);
  WriteFile(steps_ + "/A_1.txt", "nan 0\n0 1\n");
  const std::string tar = directory_.File("steps.tar"), archive = directory_.File("x.npz");
  ASSERT_EQ(RunToEnd({"/bin/tar", "-C", directory_.File(""), "-cf", tar, "steps"}).exit_code, 0);
  const Finished failed = daemon_.Ctl({"series", tar, "--ones", "-o", "-"});
  EXPECT_EQ(failed.exit_code, 12);
  EXPECT_THAT(failed.errors, HasSubstr("step 1 ("));
  EXPECT_THAT(failed.errors, HasSubstr("A_1.txt): "));
  EXPECT_THAT(failed.errors, ::testing::Not(HasSubstr("/croutctl-")));
  WriteFile(archive, failed.output);
  RunJson({"lu", steps_ + "/A_0.txt", archive + ":x_000"});
}

TEST_F(CroutctlSeriesTest, ATarIsUnpackedNowhereElseAndLeavesNothing) {
  const std::string temporary = directory_.File("tmp"), tar = directory_.File("steps.tar");
  std::filesystem::create_directory(temporary);
  WriteDiagonal("A_0.txt", 2);
  std::filesystem::create_directory(steps_ + "/more");
  WriteDiagonal("more/A_0.txt", 2);
  const auto run = [&](const std::string& transform) {
    EXPECT_EQ(RunToEnd({"/bin/tar", "-C", directory_.File(""), "-P", "--transform=" + transform,
                        "-cf", tar, "steps"})
                  .exit_code,
              0);
    std::vector<std::string> command = {"/usr/bin/env", "TMPDIR=" + temporary};
    for (const std::string& word : daemon_.CtlCommand({"series", tar, "--ones", "--json"})) {
      command.push_back(word);
    }
    return RunToEnd(command);
  };
  const Finished twice = run("s,none,,");
  EXPECT_EQ(twice.exit_code, 12);
  EXPECT_THAT(twice.errors, HasSubstr("steps.tar:A_0.txt is in the archive twice"));
  std::filesystem::remove_all(steps_ + "/more");
  const Finished outside = run("s,^steps/,../../../../../outside/,");
  EXPECT_EQ(outside.exit_code, 0) << outside.errors;
  EXPECT_EQ(Json::parse(outside.output)["matrix"], tar + ":A_0.txt");
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

TEST_F(CroutctlSeriesTest, FilesAreMatricesWithCommonRightHandSides) {
  WriteSide("b.mtx", 4);
  const std::string b = steps_ + "/b.mtx";
  WriteDiagonal("one.txt", 2);
  WriteDiagonal("two.txt", 4);
  const std::vector<std::string> matrices = {steps_ + "/two.txt", steps_ + "/one.txt"};
  const Finished table = daemon_.Ctl({"series", matrices[0], matrices[1], "--rhs=" + b,
                                      "--strategy=refactor", "-o", x_, "--format=txt"});
  EXPECT_EQ(table.exit_code, 0) << table.errors;
  EXPECT_EQ(table.errors, "");
  EXPECT_THAT(table.output, StartsWith("step  strategy  iterations  age  backward_error  seconds\n"
                                       "   0  refactor           1    0  "));
  EXPECT_THAT(table.output, HasSubstr("\n   1  refactor           1    0  "));
  EXPECT_EQ(ReadFile(x_ + "/x_000.txt"), "1\n1\n");
  EXPECT_EQ(ReadFile(x_ + "/x_001.txt"), "2\n2\n");
  EXPECT_EQ(Series({matrices[0], matrices[1], "--ones", "--transpose"}).size(), 2u);
}

TEST_F(CroutctlSeriesTest, FactorsAreCachedAndUsedAtTheStart) {
  WriteDiagonal("A0.txt", 2);
  const std::string matrix = steps_ + "/A0.txt";
  const auto kept = Series({matrix, "--ones", "--keep", "--name=flow"});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0]["factor"]["name"], "flow");
  EXPECT_EQ(Factors(), 1u);
  const auto begun = Series({matrix, "--ones", "--start=flow", "--strategy=reuse"});
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0]["strategy"], "reuse");
  EXPECT_FALSE(begun[0].contains("factor"));
  EXPECT_EQ(Factors(), 1u);
}

TEST_F(CroutctlSeriesTest, AStepStartsAtItsX0) {
  WriteFile(steps_ + "/A_0.txt", "2 1\n1 3\n");
  WriteSide("b_0.mtx", 1);
  WriteSide("b_1.mtx", 5);
  WriteFile(steps_ + "/x0_1.txt", "2\n1\n");
  WriteFile(steps_ + "/X0-2.csv", "0\n0\n");  // an initial guess of zero has no effect
  WriteSide("b_2.mtx", 5);
  const auto steps = Series({steps_, "--strategy=reuse", "-o", x_});
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_FALSE(steps[0].contains("x0"));
  EXPECT_THAT(steps[1]["x0"].get<std::string>(), ::testing::EndsWith("x0_1.txt"));
  EXPECT_EQ(steps[1]["old_iterations"], 0);
  EXPECT_GT(steps[2]["old_iterations"], 0);
  for (const char* x : {"/x_001.mtx", "/x_002.mtx"}) {
    EXPECT_THAT(ArrayValues(x_ + x), Pointwise(DoubleNear(1e-14), {2.0, 1.0}));
  }
  // Without a separator, "x0" is matrix number 0 named x, like "x_0".
  std::filesystem::rename(steps_ + "/x0_1.txt", steps_ + "/x0.txt");
  const Finished both = daemon_.Ctl({"series", steps_, "--ones"});
  EXPECT_NE(both.exit_code, 0);
  EXPECT_THAT(both.errors, HasSubstr("are both the matrix of step '0'"));
}

TEST_F(CroutctlSeriesTest, ASingularMatrixServesTheNextStepToo) {
  WriteDiagonal("A_0.txt", 2);
  WriteFile(steps_ + "/A_1.txt", "0 0\n0 1\n");
  WriteSide("b_2.mtx", 6);
  WriteDiagonal("A_3.txt", 3);
  const Finished finished = daemon_.Ctl(
      {"--json", "series", steps_, "--ones", "--strategy=refactor", "--fail-singular", "-o", x_});
  EXPECT_EQ(finished.exit_code, 10);
  std::istringstream lines(finished.output);
  std::vector<bool> solved;
  for (std::string line; std::getline(lines, line);) {
    solved.push_back(Json::parse(line)["solved"].get<bool>());
  }
  EXPECT_EQ(solved, (std::vector<bool>{true, false, false, true}));
  EXPECT_THAT(finished.errors, HasSubstr("step 2: the matrix is singular"));
  EXPECT_FALSE(std::filesystem::exists(x_ + "/x_002.mtx"));
  EXPECT_TRUE(std::filesystem::exists(x_ + "/x_003.mtx"));
}

TEST_F(CroutctlSeriesTest, ADroppedMatrixIsSentAgain) {
  WriteDiagonal("A_0.txt", 2);
  WriteFile(directory_.File("other.txt"), "3 0\n0 3\n");
  const std::string side = steps_ + "/b_1.mtx";
  ASSERT_EQ(mkfifo(side.c_str(), 0600), 0);
  std::thread other([&] {
    // The FIFO opens after the first step, when croutctl reads the file of the second step.
    std::ofstream writer(side);
    RunJson({"refactor", "flow", directory_.File("other.txt")});
    writer << "%%MatrixMarket matrix array real general\n2 1\n6\n6\n";
  });
  const auto steps =
      Series({steps_, "--ones", "--strategy=refactor", "--keep", "--name=flow", "-o", x_});
  other.join();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1]["factor_version"], 3);
  EXPECT_THAT(ArrayValues(x_ + "/x_001.mtx"), Pointwise(DoubleNear(1e-12), {3.0, 3.0}));
}

TEST_F(CroutctlSeriesTest, MatricesChangeByFiles) {
  WriteDiagonal("A_0.txt", 2);
  WriteFile(steps_ + "/entries_1.mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 2\n2 2 4\n1 2 0\n");
  WriteFile(steps_ + "/U_2.txt", "1\n0\n");
  WriteFile(steps_ + "/v_2.txt", "6\n0\n");
  WriteSide("b_2.mtx", 8);
  // At this point, the matrix is diag(8, 4).
  WriteFile(steps_ + "/A_3.mtx",
            "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 1\n2 2 1\n1 1 1\n");
  WriteFile(steps_ + "/values_4.txt", "2\n16\n6\n");
  WriteSide("b_5.mtx", 16);  // uses the matrix with the new values
  const auto steps = Series({steps_, "--ones", "-o", x_});
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_FALSE(steps[0].contains("change"));
  EXPECT_THAT(steps[1]["change"][0].get<std::string>(), ::testing::EndsWith("entries_1.mtx"));
  EXPECT_EQ(steps[2]["change"].size(), 2u);
  EXPECT_EQ(steps[4]["matrix"], "");
  const std::vector<double> expected[] = {{0.5, 0.5}, {0.5, 0.25},     {1, 2},
                                          {0.5, 1},   {0.125, 0.0625}, {2, 1}};
  for (int i = 0; i < 6; ++i) {
    EXPECT_THAT(ArrayValues(absl::StrCat(x_, "/x_00", i, ".mtx")),
                Pointwise(DoubleNear(1e-12), expected[i]));
  }
}

TEST_F(CroutctlSeriesTest, ValuesOfASparseMatrixBelongToItsEntries) {
  const auto copy = [&](const std::string& from, const std::string& to) {
    WriteFile(steps_ + "/" + to, ReadFile(SparseArchive(from)));
  };
  copy("archive.npz", "A_0.npz");
  copy("archive_coo.npz", "values_1.npz");
  WriteFile(steps_ + "/values_2.txt", "2\n0\n4\n0\n4\n");
  ASSERT_EQ(Series({steps_, "--ones", "-o", x_}).size(), 3u);
  EXPECT_THAT(ArrayValues(x_ + "/x_001.mtx"), Pointwise(DoubleNear(1e-14), {-1.0, 1.0 / 3, 1.0}));
  EXPECT_THAT(ArrayValues(x_ + "/x_002.mtx"), Pointwise(DoubleNear(1e-14), {0.5, 0.25, 0.25}));
  copy("archive_csc.npz", "values_1.npz");
  const Finished refused = daemon_.Ctl({"series", steps_, "--ones"});
  EXPECT_EQ(refused.exit_code, 13);
  EXPECT_THAT(refused.errors, HasSubstr("step 1 (" + steps_ + "/values_1.npz): "));
  EXPECT_THAT(refused.errors, HasSubstr("other positions, or another order of them"));
}

TEST_F(CroutctlSeriesTest, AnInitialFactorIsUpdated) {
  WriteDiagonal("A0.txt", 2);
  Series({steps_ + "/A0.txt", "--ones", "--keep", "--name=flow"});
  const std::string changes = directory_.File("changes");
  std::filesystem::create_directory(changes);
  WriteFile(changes + "/entries1.mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 8\n");
  const auto steps = Series({changes, "--ones", "--start=flow", "-o", x_});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_THAT(ArrayValues(x_ + "/x_000.mtx"), Pointwise(DoubleNear(1e-12), {0.125, 0.5}));
}

TEST_F(CroutctlSeriesTest, InvalidChangesAreRefused) {
  WriteDiagonal("A_0.txt", 2);
  const std::string coordinates = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 8\n";
  const std::vector<std::tuple<std::vector<std::pair<std::string, std::string>>, std::string>>
      cases = {
          {{{"A_1.txt", "1 0\n0 1\n"}, {"values_1.txt", "1\n"}},
           "are a change and the matrix of one step"},
          {{{"U_1.txt", "1\n1\n"}}, "a low-rank change needs both U and V"},
          {{{"entries_1.mtx", coordinates}, {"values_1.txt", "1\n"}},
           "change the matrix of the same step"},
          {{{"u_1.txt", "1\n1\n"}, {"v_1.txt", "1 1\n"}}, "2 x 1"},
          {{{"entries_1.txt", "1 0\n0 1\n"}}, "Matrix Market coordinate format"},
          {{{"values_1.txt", "1 0\n0 1\n"}}, "a vector"},
          {{{"values_1.txt", "1\n"}}, "last matrix was dense"},
          {{{"entries_1.mtx",
             "%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 8 1\n"}},
           "complex"},
      };
  for (const auto& [files, message] : cases) {
    for (const auto& [name, text] : files) WriteFile(steps_ + "/" + name, text);
    const Finished finished = daemon_.Ctl({"series", steps_, "--ones"});
    EXPECT_EQ(finished.exit_code, 12) << finished.errors;
    EXPECT_THAT(finished.errors, HasSubstr(message));
    for (const auto& [name, text] : files) std::filesystem::remove(steps_ + "/" + name);
  }
}

TEST_F(CroutctlSeriesTest, ANumericallySingularMatrixHasAWarning) {
  WriteFile(steps_ + "/A.txt", "1 0\n0 1e-17\n");
  const Finished finished = daemon_.Ctl({"--json", "series", steps_, "--ones"});
  EXPECT_EQ(finished.exit_code, 0);
  const Json step = Json::parse(finished.output);
  EXPECT_EQ(step["accurate"], true);
  EXPECT_EQ(step["warnings"], Json::array({"nearly_singular"}));
  EXPECT_THAT(finished.errors, HasSubstr("condition at least 1e+17"));
}

TEST_F(CroutctlSeriesTest, ErrorsEndTheSeriesWithAnExitCode) {
  WriteDiagonal("A0.txt", 2);
  const std::string good = steps_ + "/A0.txt";
  const std::string bad = directory_.File("nan.txt");
  WriteFile(bad, "nan 0\n0 1\n");
  const std::string empty = directory_.File("empty");
  std::filesystem::create_directory(empty);
  const std::vector<std::tuple<std::vector<std::string>, int, std::string>> cases = {
      {{good, bad, "--ones"}, 12, "step 1 (" + bad + "): "},
      {{good}, 12, "give --rhs or --ones"},
      {{empty, "--ones"}, 12, "has no step files"},
      {{good, "--rhs=" + matrix_}, 12, "must be dense"},
      {{good, "--ones", "--accuracy=1"}, 12, "--accuracy: 1 is not in [0, 1)"},
      {{good, "--ones", "--start=nobody"}, 11, "no factor is named 'nobody'"},
      {{good, "--ones", "-o", good}, 19, "cannot create"},
      {{good, "--ones", "--start=x", "--keep"}, 2, "--keep"},
      {{good, "--ones", "--name=x"}, 2, "--keep"},
      {{good, "--ones", "--condition"}, 2, "--condition"},
      {{steps_ + "/missing", "--ones"}, 2, "missing"},
  };
  for (auto [arguments, code, message] : cases) {
    arguments.insert(arguments.begin(), "series");
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, code) << finished.errors;
    EXPECT_THAT(finished.errors, HasSubstr(message));
  }
  WriteDiagonal("J_0.txt", 2);
  EXPECT_THAT(daemon_.Ctl({"series", steps_, "--ones"}).errors, HasSubstr("are both the matrix"));
  EXPECT_EQ(Factors(), 0u);
}

}  // namespace
}  // namespace crout::e2e::croutctl_series_test
