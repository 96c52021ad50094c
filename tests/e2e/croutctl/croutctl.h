// SPDX-License-Identifier: Apache-2.0

// A fixture for tests of croutctl against a real daemon.
#ifndef CROUT_TESTS_E2E_CROUTCTL_CROUTCTL_H_
#define CROUT_TESTS_E2E_CROUTCTL_CROUTCTL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/harness/daemon.h"

namespace crout::e2e {

using Json = nlohmann::json;

inline constexpr char kMatrix[] =
    "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 2\n2 1 4\n2 2 5\n1 3 1\n3 3 8\n";
inline constexpr char kSingular[] = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 3\n";

// Returns the numbers of a Matrix Market array file, without its size line.
inline std::vector<double> ArrayValues(const std::string& path) {
  std::istringstream text(ReadFile(path));
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line.substr(0, 28), "%%MatrixMarket matrix array ") << path;
  std::getline(text, line);
  std::vector<double> values;
  for (double value; text >> value;) values.push_back(value);
  return values;
}

// Returns the path of an archive of [[1, 0, 2], [0, 3, 0], [4, 0, 5]] by scipy.sparse.save_npz.
// archive_csc.npz stores the matrix by columns, other archives by rows.
inline std::string SparseArchive(const std::string& name) {
  return CROUT_SOURCE_DIR "/tests/fuzz/corpus/sparse_npz/" + name;
}

// Converts an array of strings. GoogleMock cannot print arrays of nlohmann, whose elements are
// containers.
inline std::vector<std::string> Strings(const Json& array) { return array; }

class CroutctlTest : public ::testing::Test {
 protected:
  CroutctlTest() {
    WriteFile(matrix_, kMatrix);
    WriteFile(singular_, kSingular);
  }

  // Runs croutctl with --json. Expects success and exactly one JSON object as output.
  Json RunJson(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const Finished finished = daemon_.Ctl(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    EXPECT_EQ(finished.errors, "");
    const Json json = Json::parse(finished.output, nullptr, false);
    EXPECT_TRUE(json.is_object()) << finished.output;
    return json;
  }

  // Runs croutctl with the bytes of a file on standard input, through a pipe.
  Finished RunPiped(const std::string& file, const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {"/bin/sh", "-c", "cat " + file + " | \"$@\"", "sh"};
    for (const std::string& word : daemon_.CtlCommand(arguments)) command.push_back(word);
    return RunToEnd(command);
  }

  // Runs croutctl with redirections in the syntax of the shell.
  Finished RunInShell(const std::vector<std::string>& arguments, const std::string& redirections) {
    std::vector<std::string> command = {"/bin/sh", "-c", "exec \"$@\" " + redirections, "sh"};
    for (const std::string& word : daemon_.CtlCommand(arguments)) command.push_back(word);
    return RunToEnd(command);
  }

  // Factors kMatrix and returns the handle.
  std::string Factor() { return RunJson({"factor", matrix_})["handle"]; }

  Daemon daemon_;
  TempDir directory_;
  const std::string matrix_ = directory_.File("a.mtx");
  const std::string singular_ = directory_.File("singular.mtx");
};

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_CROUTCTL_CROUTCTL_H_
