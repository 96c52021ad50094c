// Child processes: started, watched and ended by a test.
#ifndef CROUT_TESTS_E2E_PROCESS_H_
#define CROUT_TESTS_E2E_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/patience.h"

namespace crout::e2e {

// A program of this build: croutd, croutctl, croutd_test. Looked for in $CROUT_TEST_BIN, then
// where the build put it, then beside the test, then in bin/ of the tree that the tests are
// installed in.
std::string ProgramPath(const std::string& name);

// A directory of its own, removed with everything in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;  // The directory is this object's.
  TempDir& operator=(const TempDir&) = delete;

  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& contents);

// Runs from construction; killed and reaped by the destructor if still running. Standard output and
// error go to files, or the latter to a path that is given (a FIFO has a reader then); standard
// input is empty, or a file. Settings of Crout in the environment are
// not passed on. Not thread-safe.
class Process {
 public:
  explicit Process(const std::vector<std::string>& command, const std::string& stdin_path = "",
                   const std::string& stderr_path = "");
  ~Process();
  Process(const Process&) = delete;  // The process is this object's.
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // The exit code, or 128 + signal as a shell says it; nothing if it still runs after `timeout`.
  std::optional<int> Wait(absl::Duration timeout = testing::kPatience);
  bool running() { return !Wait(absl::ZeroDuration()).has_value(); }

  std::string Output() const { return ReadFile(directory_.File("stdout")); }
  std::string Errors() const { return ReadFile(directory_.File("stderr")); }

 private:
  TempDir directory_;
  pid_t pid_;
  std::optional<int> exit_code_;
};

// A field of /proc/PID/status, as VmRSS, in bytes; -1 if there is none.
int64_t StatusBytes(pid_t pid, const std::string& field);

// What a program that ran to its end left.
struct Finished {
  int exit_code;
  std::string output;
  std::string errors;
};

// Runs a command to its end; a test failure and exit code -1 if that does not come.
Finished RunToEnd(const std::vector<std::string>& command, const std::string& stdin_path = "");

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_PROCESS_H_
