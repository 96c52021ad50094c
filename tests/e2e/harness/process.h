// SPDX-License-Identifier: Apache-2.0

// Child processes of tests.
#ifndef CROUT_TESTS_E2E_HARNESS_PROCESS_H_
#define CROUT_TESTS_E2E_HARNESS_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/timing/eventually.h"

namespace crout::e2e {

// Returns the path of croutd, croutctl or croutd_test. Searches $CROUT_TEST_BIN, the build tree,
// the directory of the test, and bin/ of the installed tests.
std::string ProgramPath(const std::string& name);

// A temporary directory. The destructor removes it with its contents.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;  // owns the directory
  TempDir& operator=(const TempDir&) = delete;

  // Returns the path of a file in the directory.
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Returns the contents of a file, or "" if it cannot be read.
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& contents);

// A child process. The constructor starts it; the destructor kills it if it still runs. Standard
// input is the file `stdin_path`, or empty. Standard output and standard error are written to
// files; standard error can be written to `stderr_path` instead, such as a FIFO with a reader. The
// environment contains no variables of Crout. Not thread-safe.
class Process {
 public:
  explicit Process(const std::vector<std::string>& command, const std::string& stdin_path = "",
                   const std::string& stderr_path = "");
  ~Process();
  Process(const Process&) = delete;  // owns the process
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Waits until the process ends. Returns its exit code, or 128 + signal as in a shell. Returns
  // nullopt if it still runs after `timeout`.
  std::optional<int> Wait(absl::Duration timeout = testing::kTestTimeout);
  bool running() { return !Wait(absl::ZeroDuration()).has_value(); }

  // Return the standard output and the standard error so far.
  std::string Output() const { return ReadFile(directory_.File("stdout")); }
  std::string Errors() const { return ReadFile(directory_.File("stderr")); }

 private:
  TempDir directory_;
  pid_t pid_;
  std::optional<int> exit_code_;
};

// Returns a field of /proc/PID/status, such as VmRSS, in bytes. Returns -1 if it is missing.
int64_t StatusBytes(pid_t pid, const std::string& field);

// The result of a finished program.
struct Finished {
  int exit_code;  // result of Process::Wait
  std::string output;
  std::string errors;
};

// Runs a command to its end. If it does not end within kTestTimeout, fails the test and returns the
// exit code -1.
Finished RunToEnd(const std::vector<std::string>& command, const std::string& stdin_path = "");

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_HARNESS_PROCESS_H_
