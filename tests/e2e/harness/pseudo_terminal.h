// SPDX-License-Identifier: Apache-2.0

// A program on a pseudo-terminal, which tests type into.
#ifndef CROUT_TESTS_E2E_HARNESS_PSEUDO_TERMINAL_H_
#define CROUT_TESTS_E2E_HARNESS_PSEUDO_TERMINAL_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace crout::e2e {

// Starts `command` with a new terminal as its standard input, output and error. The destructor
// kills the program if it still runs. Not thread-safe.
class PseudoTerminal {
 public:
  explicit PseudoTerminal(const std::vector<std::string>& command);
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;  // owns the process
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  void Type(const std::string& keys) const;
  void Signal(int signal) const;
  // Reads until the screen contains `text`. Returns false after kTestTimeout.
  bool Shows(const std::string& text);
  // Reads until the program ends. Returns its exit code, 128 + signal as in a shell, or -1 after
  // kTestTimeout.
  int Wait();
  // Everything that the program has written.
  const std::string& screen() const { return screen_; }
  // Whether the terminal echoes and edits lines, as before the start of the program.
  bool HasLineMode() const;

 private:
  // Reads the available output. Returns false if the program has ended.
  bool Read();

  int terminal_ = -1;
  int keeper_ = -1;  // keeps the terminal's mode readable after the program has ended
  pid_t pid_ = -1;
  std::string screen_;
};

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_HARNESS_PSEUDO_TERMINAL_H_
