// SPDX-License-Identifier: Apache-2.0

// Child processes of tests.
#ifndef CROUT_TESTS_E2E_PROCESS_H_
#define CROUT_TESTS_E2E_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/eventually.h"

namespace crout::e2e {

// Returns the path of a program of this build: croutd, croutctl or croutd_test. Searches
// $CROUT_TEST_BIN, the build tree, the test's directory, and bin/ of the installed test tree.
std::string ProgramPath(const std::string& name);

// A temporary directory, removed with its contents.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;  // owns the directory
  TempDir& operator=(const TempDir&) = delete;

  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& contents);

// A child process. It runs from construction; the destructor kills and reaps it if it is still
// running. Standard output and error go to files; standard error can go to a given path instead,
// such as a FIFO with a reader. Standard input is empty or a file. Crout's environment variables
// are not passed on. Not thread-safe.
class Process {
 public:
  explicit Process(const std::vector<std::string>& command, const std::string& stdin_path = "",
                   const std::string& stderr_path = "");
  ~Process();
  Process(const Process&) = delete;  // owns the process
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Returns the exit code, or 128 + signal as in a shell, or nullopt if it still runs after
  // `timeout`.
  std::optional<int> Wait(absl::Duration timeout = testing::kTestTimeout);
  bool running() { return !Wait(absl::ZeroDuration()).has_value(); }

  std::string Output() const { return ReadFile(directory_.File("stdout")); }
  std::string Errors() const { return ReadFile(directory_.File("stderr")); }

 private:
  TempDir directory_;
  pid_t pid_;
  std::optional<int> exit_code_;
};

// Returns a field of /proc/PID/status, such as VmRSS, in bytes, or -1 if it is missing.
int64_t StatusBytes(pid_t pid, const std::string& field);

// The result of a finished program.
struct Finished {
  int exit_code;
  std::string output;
  std::string errors;
};

// Runs a command to its end. If it does not end, the test fails and the exit code is -1.
Finished RunToEnd(const std::vector<std::string>& command, const std::string& stdin_path = "");

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_PROCESS_H_
