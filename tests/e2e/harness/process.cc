// SPDX-License-Identifier: Apache-2.0

#include "tests/e2e/harness/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

extern char** environ;

namespace crout::e2e {
namespace {

std::vector<char*> Environment() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!absl::StartsWith(*entry, "CROUT_")) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

// Runs in the child between fork and exec, where only system calls are permitted.
[[noreturn]] void Exec(char* const* arguments, char* const* environment, const char* in,
                       const char* out, const char* err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // kills the child if the test ends
  dup2(open(in, O_RDONLY), STDIN_FILENO);
  dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
  dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  execve(arguments[0], arguments, environment);
  _exit(127);
}

}  // namespace

std::string ProgramPath(const std::string& name) {
  const char* directory = std::getenv("CROUT_TEST_BIN");
  const std::string built = name == "croutd"     ? CROUT_CROUTD_PATH
                            : name == "croutctl" ? CROUT_CROUTCTL_PATH
                                                 : CROUT_CROUTD_TEST_PATH;
  if (directory != nullptr) return std::string(directory) + "/" + name;
  if (std::filesystem::exists(built)) return built;
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const auto beside = self.parent_path() / name;
  if (std::filesystem::exists(beside)) return beside.string();
  return (self.parent_path() / "../../bin" / name).lexically_normal().string();
}

TempDir::TempDir() {
  path_ = (std::filesystem::temp_directory_path() / "crout-e2e-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make a directory " << path_;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void WriteFile(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

Process::Process(const std::vector<std::string>& command, const std::string& stdin_path,
                 const std::string& stderr_path) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const std::vector<char*> environment = Environment();
  const std::string in = stdin_path.empty() ? "/dev/null" : stdin_path;
  const std::string out = directory_.File("stdout");
  const std::string err = stderr_path.empty() ? directory_.File("stderr") : stderr_path;
  pid_ = fork();
  if (pid_ == 0) {
    Exec(arguments.data(), environment.data(), in.c_str(), out.c_str(), err.c_str());
  }
}

Process::~Process() {
  if (exit_code_.has_value()) return;
  Signal(SIGKILL);
  Wait();
}

void Process::Signal(int signal) const {
  if (!exit_code_.has_value()) kill(pid_, signal);
}

std::optional<int> Process::Wait(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!exit_code_.has_value()) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (absl::Now() >= deadline) {
      return std::nullopt;
    } else {
      absl::SleepFor(absl::Milliseconds(2));
    }
  }
  return exit_code_;
}

int64_t StatusBytes(pid_t pid, const std::string& field) {
  const std::string status = ReadFile(absl::StrCat("/proc/", pid, "/status"));
  const size_t at = status.find(field + ":");
  int64_t kib = 0;
  if (at == std::string::npos) return -1;
  const size_t begin = status.find_first_of("0123456789", at);
  const size_t end = status.find_first_not_of("0123456789", begin);
  if (!absl::SimpleAtoi(status.substr(begin, end - begin), &kib)) return -1;
  return kib << 10;
}

Finished RunToEnd(const std::vector<std::string>& command, const std::string& stdin_path) {
  Process process(command, stdin_path);
  const std::optional<int> exit_code = process.Wait();
  if (!exit_code.has_value()) ADD_FAILURE() << command[0] << " did not end";
  return {exit_code.value_or(-1), process.Output(), process.Errors()};
}

}  // namespace crout::e2e
